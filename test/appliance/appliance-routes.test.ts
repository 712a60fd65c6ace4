// The HTTP surface of an appliance: who may do what, errors, lists, deleting.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startAppliance } from '../../appliance/appliance.ts'
import { applianceConfigSchema } from '../../appliance/appliance-config.ts'
import { APPLIANCE_ROUTES } from '../../appliance/appliance-routes.ts'
import { writeBigCapture } from '../support/packets/big-capture.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'

let appliance: TempAppliance
before(async () => {
  appliance = await startTempAppliance({ config: { model: 'CF-1' } })
  const path = join(appliance.folder, 'big.pcap')
  await writeBigCapture(path)
  await appliance.importFiles('big', path)
})
after(() => appliance[Symbol.asyncDispose]())

async function importSmall(name: string, linkType = 1): Promise<void> {
  const path = join(appliance.folder, `${name}.pcap`)
  await writeFile(path, makePcap([makePacket(1_000n, name, 60), makePacket(2_000n, name, 60)], { linkType }))
  await appliance.importFiles(name, path)
}

const SINGLE = '/api/v1/pcap/single'
const GOOD_RANGE = '/api/v1/pcap/timerange?TSBegin=1&TSEnd=2&TSUnit=sec'

describe('who may do what', () => {
  const statusFor = async (
    path: string,
    role?: 'viewer' | 'user' | 'full',
    method = 'GET',
  ): Promise<number> => {
    const user = role === undefined ? undefined : appliance.credentials(role)
    // Some answers do not end on their own.
    using answer = await appliance.open(path, { user, method })
    return answer.response.statusCode ?? 0
  }

  test('every path except system, livez and metrics requires credentials', async () => {
    for (const { path, scope, method } of APPLIANCE_ROUTES) {
      const isOpen = ['anyone', 'system', 'metrics'].includes(scope)
      assert.equal(await statusFor(path, undefined, method), isOpen ? 200 : 401, `${method} ${path}`)
    }
    const answer = await appliance.get('/stream/list', { user: undefined })
    assert.equal(answer.headers['www-authenticate'], 'Basic realm="capfleet", charset="UTF-8"')
    assert.equal(answer.json().code, 'unauthenticated')
  })

  test('a viewer lists, a user downloads, only full deletes', async () => {
    assert.equal(await statusFor('/stream/list', 'viewer'), 200)
    assert.equal(await statusFor(`${SINGLE}?StreamName=big`, 'viewer'), 403)
    assert.equal(await statusFor(GOOD_RANGE, 'user'), 200)
    assert.equal(await statusFor('/pcap/del?StreamName=nothing', 'user'), 403)
    assert.equal(await statusFor('/pcap/del?StreamName=nothing', 'full'), 404)
  })

  test('wrong credentials and malformed ones are refused', async () => {
    for (const authorization of [
      'Basic',
      'Basic %%%',
      'Bearer x',
      `Basic ${btoa('full:wrong')}`,
      `Basic ${btoa('x:y')}`,
    ]) {
      const answer = await appliance.get('/stream/list', { user: undefined, headers: { authorization } })
      assert.equal(answer.status, 401, authorization)
    }
  })

  test('without a user the appliance does not start', async () => {
    const users = join(appliance.folder, 'nobody.yaml')
    await writeFile(users, 'users: []\n')
    const config = applianceConfigSchema.parse({
      store: appliance.storePath,
      listen: { port: 0 },
      auth: { users },
      logLevel: 'silent',
    })
    await assert.rejects(startAppliance(config), { code: 'bad-config', message: /must name a user/ })
  })

  test('auth.anonymousSystem=false closes what is open otherwise, and the metrics are closed by default', async () => {
    const users = join(appliance.folder, 'users.yaml')
    await using closed = await startTempAppliance({
      config: { auth: { users, anonymousSystem: false } },
    })
    for (const [path, setting] of [
      ['/api/v1/system/version', 'auth.anonymousSystem'],
      ['/metrics', 'auth.anonymousMetrics'],
    ] as const) {
      const refused = await closed.get(path, { user: undefined })
      assert.equal(refused.status, 401, path)
      assert.ok(String(refused.json().detail).includes(`the setting ${setting}: true opens it`))
      assert.equal((await closed.get(path)).status, 200, path)
    }
  })

  test('wrong credentials at an open path are answered as if there were none', async () => {
    const answer = await appliance.get('/api/v1/system/version', { user: 'full:wrong' })
    assert.equal(answer.status, 200)
  })

  test('wrong logins delay their sender, and no one else', async () => {
    const users = join(appliance.folder, 'users.yaml')
    await using wary = await startTempAppliance({ config: { auth: { users, logins: { wrongMax: 2 } } } })
    const statusOf = async (user: string, localAddress: string) =>
      await wary.get('/stream/list', { user, localAddress })
    for (let at = 0; at < 2; at++) assert.equal((await statusOf(`full:wrong${at}`, '127.0.0.2')).status, 401)
    const refused = await statusOf('full:wrong', '127.0.0.2')
    assert.deepEqual([refused.status, refused.json().code], [429, 'too-many-logins'])
    assert.match(String(refused.headers['retry-after']), /^[12]$/)
    assert.equal((await statusOf(wary.credentials('full'), '127.0.0.3')).status, 200)
    assert.equal((await statusOf(wary.credentials('full'), '127.0.0.2')).status, 200, 'known by then')
  })
})

test('unknown paths, methods and captures are distinguished', async () => {
  const cases = [
    ['GET', '/nothing', 404, 'not-found'],
    ['POST', '/stream/list', 405, 'method-not-allowed'],
    ['HEAD', '/pcap/del?StreamName=big', 405, undefined],
    ['GET', `${SINGLE}?StreamName=bigg`, 404, 'unknown-capture'],
    ['GET', '/api/v1/pcap/%', 404, 'not-found'],
  ] as const
  const METHODS: Readonly<Record<string, string>> = {
    '/stream/list': 'GET, HEAD',
    '/pcap/del?StreamName=big': 'GET, DELETE',
  }
  for (const [method, path, status, code] of cases) {
    const answer = await appliance.get(path, { method })
    assert.equal(answer.status, status, path)
    if (code !== undefined) assert.equal(answer.json().code, code)
    assert.equal(answer.headers.allow, status === 405 ? METHODS[path] : undefined, path)
  }
})

describe('system', () => {
  test('time_current is 19 digits of now, or JSON when asked for', async () => {
    const answer = await appliance.get('/api/v1/system/time_current', { user: undefined })
    assert.match(answer.body.toString(), /^\d{19}\n$/)
    assert.match(answer.headers['content-type'] ?? '', /^text\/plain/)
    assert.ok(Math.abs(Number(BigInt(answer.body.toString().trim()) / 1_000_000n) - Date.now()) < 5_000)
    const json = await appliance.get('/api/v1/system/time_current', {
      headers: { accept: 'application/json' },
    })
    assert.match(String(json.json().time_current), /^\d{19}$/)
    const any = await appliance.get('/api/v1/system/time_current', { headers: { accept: '*/*' } })
    assert.match(any.body.toString(), /^\d{19}\n$/)
  })

  test('version has the three members of the reference, all texts', async () => {
    const answer = (await appliance.get('/api/v1/system/version', { user: undefined })).json()
    assert.deepEqual(Object.keys(answer), ['version', 'device', 'build'])
    assert.equal(answer.device, 'CF-1')
    assert.match(String(answer.version), /^\d+\.\d+\.\d+/)
    assert.match(String(answer.build), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
  })
})

describe('unknown parameters', () => {
  const paths = ['/stream/list?', '/api/v1/system/version?', `${SINGLE}?StreamName=big&MaxPackets=1&`]

  test('are reported truncated, however long and however many', async () => {
    const long = `${'x'.repeat(128)}=1`
    const many = Array.from({ length: 60 }, (_, i) => `%C3%BC${'y'.repeat(60)}${i}=1`).join('&')
    for (const path of paths) {
      for (const query of [long, many]) {
        const answer = await appliance.get(`${path}${query}`)
        assert.equal(answer.status, 200)
        const ignored = String(answer.headers['capfleet-ignored'])
        assert.ok(ignored.length <= 1_024, `${path}: ${ignored.length} bytes`)
        assert.match(ignored, /^[!-~ ]+\.\.\.$/)
      }
    }
  })

  test('with names that no product has are refused: they are the rest of a value with a bare &', async () => {
    for (const path of paths) {
      for (const name of ['x'.repeat(129), 'x'.repeat(17_000), 'a%0Ab']) {
        const answer = await appliance.get(`${path}${name}=1`)
        assert.equal(answer.status, 400)
        assert.match(String(answer.body), /is not the name of a parameter; write & in a value as %26/)
        assert.ok(answer.body.length < 1_024, `${path}: ${answer.body.length} bytes`)
      }
    }
  })
})

describe('/stream/list', () => {
  const list = async (query = '') => {
    const answer = await appliance.get(`/stream/list${query}`)
    assert.equal(answer.status, 200)
    return answer.json() as { Path: string; StreamList: boolean; List: Record<string, unknown>[] }
  }
  before(async () => {
    await importSmall('listed1')
    await importSmall('listed2')
  })

  test('has every member, exact, newest first, with links that work', async () => {
    const { Path, StreamList, List } = await list()
    assert.deepEqual([Path, StreamList], ['/capture/', true])
    assert.equal(List[0]?.StreamName, 'big')
    const item = List.find(({ StreamName }) => StreamName === 'listed1')
    assert.ok(item)
    assert.deepEqual(
      { ...item, id: '', Size: 0, ByteCnt: '' },
      {
        id: '',
        Path: 'listed1',
        PCAP: '/api/v1/pcap/single?StreamName=listed1&',
        Del: '/pcap/del?StreamName=listed1&',
        Link: '/stream/ssize?StreamName=listed1&StreamView=split_1GB&',
        Date: 1000,
        Size: 0,
        IsActive: false,
        Type: 'import',
        Desc: '',
        StreamName: 'listed1',
        StartTS: '1000',
        EndTS: '2001',
        PacketCnt: '2',
        ByteCnt: '',
        State: 'closed',
        ValidPct: 100,
      },
    )
    assert.equal(item.Size, Number(item.ByteCnt))
    const whole = await appliance.get(String(item.PCAP))
    const splits = (await appliance.get(String(item.Link))).json().List as { PCAP: string }[]
    const split = await appliance.get(splits[0]?.PCAP ?? '')
    assert.ok(whole.status === 200 && whole.body.equals(split.body))
  })

  test('Limit, After, From and To choose, Format=csv is a table', async () => {
    const names = async (query: string) => (await list(query)).List.map(({ StreamName }) => StreamName)
    assert.deepEqual(await names('?Limit=1'), ['big'])
    assert.deepEqual(await names('?After=big&Limit=1'), ['listed1'])
    assert.deepEqual((await names('?To=1001')).toSorted(), ['listed1', 'listed2'])
    assert.deepEqual(await names('?From=2001'), ['big'])
    assert.deepEqual(await names('?StreamName=listed1'), ['listed1'])
    assert.deepEqual(await names('?StreamName=listed'), [], 'no capture was started by that name')
    const second = (await list('?After=big&Limit=1')).List[0]
    assert.deepEqual((await list('?StreamName=listed1')).List, [second], 'its id is its place among all')
    const { headers } = await appliance.get('/stream/list')
    assert.equal(headers['capfleet-list-parameters'], 'StreamName, Limit, After, From, To, Format')
    const csv = (await appliance.get('/stream/list?Format=csv')).body.toString().split('\n')
    assert.equal(csv[0], 'StreamName,StartTS,EndTS,PacketCnt,ByteCnt,State,Type,Desc')
    assert.ok(csv.some((line) => /^listed1,1000,2001,2,\d+,closed,import,$/.test(line)))
    assert.equal((await appliance.get('/stream/list?Limit=0')).json().param, 'Limit')
    assert.equal((await appliance.get('/stream/list?Format=xml')).json().param, 'Format')
  })
})

describe('/pcap/del', () => {
  test('deletes by the full name, says what playbooks match, and the capture is gone', async () => {
    await importSmall('gone_20261120_0930')
    const base = await appliance.get('/pcap/del?StreamName=gone')
    assert.deepEqual([base.status, base.json().code, base.json().Status], [404, 'unknown-capture', false])
    const answer = await appliance.get('/pcap/del?StreamName=gone_20261120_0930&')
    const body = answer.json()
    assert.equal(body.Status, true)
    assert.match(
      String(body.Str),
      /^\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\] deleted capture \[gone_20261120_0930\]$/,
    )
    assert.equal(body.StreamName, 'gone_20261120_0930')
    assert.match(String(body.BytesFreed), /^\d+$/)
    assert.equal((await appliance.get(`${SINGLE}?StreamName=gone_20261120_0930`)).status, 404)
  })

  test('is refused from a page of another site', async () => {
    await importSmall('guarded')
    const answer = await appliance.get('/pcap/del?StreamName=guarded', {
      headers: { 'sec-fetch-site': 'cross-site' },
    })
    assert.deepEqual([answer.status, answer.json().code], [403, 'cross-site'])
    const same = await appliance.get('/pcap/del?StreamName=guarded', {
      headers: { 'sec-fetch-site': 'same-origin' },
    })
    assert.equal(same.status, 200)
  })

  test('is refused without a name', async () => {
    const answer = await appliance.get('/pcap/del')
    assert.deepEqual([answer.status, answer.json().param, answer.json().Status], [400, 'StreamName', false])
  })
})

test('captures of several link types are not mixed into one PCAP', async () => {
  await importSmall('ether')
  await importSmall('raw', 101)
  const mixed = await appliance.get('/api/v1/pcap/timerange?TSBegin=0&TSEnd=3000&TSUnit=nanos')
  assert.deepEqual([mixed.status, mixed.json().code], [409, 'mixed-link-type'])
  assert.match(String(mixed.json().detail), /RAW \(raw\)/)
  assert.equal((await appliance.get(`${SINGLE}?StreamName=raw`)).status, 200)
})
