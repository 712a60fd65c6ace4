// Captures of third-party devices may have any names, and can be requested by these names in every parameter that takes
// one.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { AUDIT_PAGE } from '../../../../src/shared/contract/audit-answers.ts'
import { attachedName } from '../../../../src/shared/query/download/download-file-name.ts'
import { API_BEGIN_NS, API_STEP_NS, ApiDevice } from '../../../support/devices/api-device.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet } from '../../../support/http-get.ts'
import { makePcap } from '../../../support/packets/packet-maker.ts'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../support/processes/client-process.ts'
import { startTempGateway, type TempGateway } from '../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'
import { startTempWorker } from '../../../support/processes/temp-worker.ts'
import { USER_PASSWORD } from '../../../support/suite-secrets.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const PACKETS = 20
const PART = `Start=${API_BEGIN_NS}&Stop=${API_BEGIN_NS + 5n * API_STEP_NS}`

/** Names, and the name of the downloaded file: in plain ASCII, and with all characters. */
const NAMES: readonly (readonly [name: string, plain: string, file: string])[] = [
  ['my cap_20261102_0900', 'my_cap_20261102_0900', 'my cap_20261102_0900'],
  ['site/a_20261102_0900', 'site_a_20261102_0900', 'site_a_20261102_0900'],
  ['t:10:00', 't_10_00', 't_10_00'],
  ['Größe_20261102_0900', 'Gr__e_20261102_0900', 'Größe_20261102_0900'],
  ['測定', 'capture__', '測定'],
  ['a&b=c', 'a_b_c', 'a&b=c'],
  ['-dash', 'capture_dash', '_dash'],
  ['plus+sign', 'plus_sign', 'plus+sign'],
  ['pct%41', 'pct_41', 'pct%41'],
  ['it\'s "quoted"; x=y', 'it_s__quoted___x_y', "it's _quoted_; x=y"],
  ['../../../etc/passwd', 'capture_._.._.._etc_passwd', '_._.._.._etc_passwd'],
  ['..', 'capture_.', '_.'],
  ['<img src=x onerror=alert(1)>', 'capture_img_src_x_onerror_alert_1__', '_img src=x onerror=alert(1)_'],
  ['#$`id`', 'capture___id_', '#$`id`'],
  ['__proto__', 'capture__proto__', '__proto__'],
  ['x'.repeat(300), 'x'.repeat(128), 'x'.repeat(128)],
  ['ö'.repeat(512), `capture${'_'.repeat(64)}`, 'ö'.repeat(64)],
]

describe('names of captures on third-party devices', () => {
  const parts = new AsyncDisposableStack()
  let gateway: TempGateway
  let foreign: ApiDevice
  let client: TempClient
  let target: string

  before(async () => {
    const folder = parts.use(await tempFolder())
    target = join(folder.path, 'files')
    const redis = parts.use(await TempRedis.create())
    foreign = parts.use(await ApiDevice.start('foreign', PACKETS))
    foreign.captures = NAMES.map(([name]) => name)
    const other = parts.use(await ApiDevice.start('other', PACKETS))
    client = parts.use(await hostedClient())
    const exports = {
      spool: join(folder.path, 'spool'),
      targets: [{ name: 'files', type: 'directory', path: target }],
    }
    const forced = { name: 'forced', role: 'user', filter: 'odd' } as const
    gateway = parts.use(await startTempGateway([foreign, other], redis.url, { exports }, [forced]))
    parts.use(await startTempWorker(gateway))
  })
  after(() => parts.disposeAsync())

  const call = (path: string, { as = 'user', method = 'GET' } = {}) =>
    httpGet(gateway.url + path, { method, headers: gateway.basic(as) })
  const whole = () => makePcap(foreign.records)
  const firstFive = () => makePcap(foreign.records.slice(0, 5))

  test('are listed with links that lead to them', async () => {
    const { List } = (await call('/stream/list')).json() as { List: Record<string, string>[] }
    const entries = List.filter(({ Device }) => Device === 'foreign')
    assert.deepEqual(entries.map(({ StreamName }) => StreamName).toSorted(), foreign.captures.toSorted())
    for (const { PCAP = '' } of entries) assert.ok((await call(PCAP)).body.equals(whole()), PCAP)
    const pages: string[] = []
    for (let next: unknown = ''; next !== undefined; ) {
      const after = next === '' ? '' : `&After=${encodeURIComponent(String(next))}`
      const page = (await call(`/stream/list?Device=foreign&Limit=3${after}`)).json()
      pages.push(...(page.List as { StreamName: string }[]).map(({ StreamName }) => StreamName))
      next = page.Next
    }
    assert.deepEqual(pages.toSorted(), foreign.captures.toSorted())
  })

  for (const [name, plain, file] of NAMES) {
    const stream = `StreamName=${encodeURIComponent(name)}`

    test(`${JSON.stringify(name.slice(0, 40))}: all of it, a part, below its device and at the root`, async () => {
      const asForm = `StreamName=${encodeURIComponent(name).replaceAll('%20', '+')}`
      for (const below of ['', '/devices/foreign'])
        for (const folder of ['/api/v1/pcap', '/pcap'])
          for (const named of new Set([stream, asForm])) {
            const [single, part, none] = [
              await call(`${below}${folder}/single?${named}`),
              await call(`${below}${folder}/splittime?${named}&${PART}`),
              await call(
                `${below}${folder}/single?StreamName=${encodeURIComponent(`no ${name.slice(0, 99)}`)}`,
              ),
            ]
            assert.ok(single.body.equals(whole()), `${below}${folder}: ${single.body.subarray(0, 200)}`)
            assert.ok(part.body.equals(firstFive()), `${below}${folder}: ${part.body.subarray(0, 200)}`)
            assert.deepEqual([none.status, none.json().code], [404, 'unknown-capture'])
          }
      const paths = foreign.asked.splice(0).map((target) => target.split('?')[0])
      assert.deepEqual(new Set(paths), new Set(['/api/v1/pcap/single', '/api/v1/pcap/splittime']))
    })

    test(`${JSON.stringify(name.slice(0, 40))}: its file has a name that is safe`, async () => {
      const disposition = String((await call(`/api/v1/pcap/single?${stream}`)).headers['content-disposition'])
      assert.match(disposition, /^[\x20-\x7e]+$/)
      assert.equal(/filename="([^"]*)"/.exec(disposition)?.[1], `${plain}.pcap`)
      assert.equal(disposition.includes('filename*'), plain !== file)
      assert.equal(attachedName(disposition), `${file}.pcap`)
    })
  }

  test('capfleet get writes the file of that name, and no other', async () => {
    const environment = gatewayEnvironment(gateway.url, 'user', USER_PASSWORD)
    for (const [name, , file] of NAMES.slice(3, 13)) {
      await using cwd = await tempFolder()
      const { status, stderr } = await client.run(['get', '--', name], { environment, cwd: cwd.path })
      assert.equal(status, 0, stderr)
      assert.deepEqual(await readdir(cwd.path), [`${file}.pcap`])
      assert.ok((await readFile(join(cwd.path, `${file}.pcap`))).equals(whole()))
    }
  })

  test('an export has files with plain names', async () => {
    for (const [name, plain] of NAMES.slice(3, 13)) {
      const order = await call(`/v1/exports?StreamName=${encodeURIComponent(name)}`, { method: 'POST' })
      assert.equal(order.status, 202, order.body.toString())
      const id = String(order.json().id)
      let shown: Record<string, unknown> = {}
      await eventually(
        async () => {
          shown = (await call(`/v1/exports/${id}`)).json()
          return ['complete', 'failed', 'partial'].includes(String(shown.state))
        },
        { message: `the export of ${name} ends` },
      )
      assert.equal(shown.state, 'complete', JSON.stringify(shown))
      const files = (await readdir(join(target, id))).filter((file) => file.endsWith('.pcap'))
      assert.deepEqual(files, [`${plain}.pcap`])
      assert.ok((await readFile(join(target, id, `${plain}.pcap`))).equals(whole()))
      assert.equal((await call(`/v1/exports/${id}/file`)).body.equals(whole()), true)
    }
  })

  test('are in the audit and in receipts as they were asked for, and in no metric', async () => {
    const seen: string[] = []
    for (const [name] of NAMES) {
      const { headers } = await call(`/api/v1/pcap/single?StreamName=${encodeURIComponent(name)}`)
      const receipt = (await call(`/v1/requests/${headers['capfleet-request-id']}`)).json()
      assert.equal(new URLSearchParams(String(receipt.query)).get('StreamName'), name)
      seen.push(name)
    }
    const page = await call(`/v1/audit?Event=download&Limit=${2 * seen.length}`, { as: 'admin' })
    const captures = new Set(AUDIT_PAGE.parse(page.json()).entries.map(({ capture }) => capture))
    for (const name of seen) assert.ok(captures.has(name), name)
    const metrics = (await httpGet(`${gateway.url}/metrics`)).body.toString()
    for (const name of seen) assert.ok(!metrics.includes(`"${name.slice(0, 20)}`), name)
  })

  test('are refused to a caller with a forced filter, whatever they are called', async () => {
    for (const [name] of NAMES) {
      const stream = `StreamName=${encodeURIComponent(name)}`
      for (const path of [
        `/api/v1/pcap/single?${stream}`,
        `/devices/foreign/pcap/splittime?${stream}&${PART}`,
      ]) {
        const { status, body } = await call(path, { as: 'forced' })
        assert.ok(status >= 400, `${path}: ${status}`)
        assert.ok(!body.includes('foreign packet'))
      }
    }
  })

  test('a name that no device can have is refused', async () => {
    for (const bad of [
      'a%0Ab',
      'a%00',
      '%C2%85',
      'x'.repeat(1_025),
      '%C3%B6'.repeat(513),
      '%FC',
      '%ED%A0%80',
    ])
      for (const path of [
        '/api/v1/pcap/single',
        '/devices/foreign/pcap/single',
        '/stream/ssize',
        '/v1/estimate',
      ]) {
        const { status, json } = await call(`${path}?StreamName=${bad}`)
        assert.deepEqual([status, json().code, json().param], [400, 'bad-parameter', 'StreamName'], path)
      }
  })
})
