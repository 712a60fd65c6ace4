// /v1/seen: where in the fleet addresses were seen, for callers who may know it; no device is missing silently.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { FLEET_SEEN_LINES, SEEN_LINES } from '../../../../../src/shared/contract/seen-answers.ts'
import { type AuditEntry, auditEntries } from '../../../../support/access/temp-audit.ts'
import type { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { startFakeFleet } from '../../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../../support/eventually.ts'
import { type HttpGetOptions, httpGet, httpOpen } from '../../../../support/http-get.ts'
import { randomMixedPacket } from '../../../../support/packets/mixed-packets.ts'
import { makePcap } from '../../../../support/packets/packet-maker.ts'
import { readPcap } from '../../../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../../../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const START_NS = 1_793_610_000_000_000_000n
const PACKETS = 500
const RANGE = { TSBegin: String(START_NS), TSEnd: String(START_NS + 60_000_000_000n), TSUnit: 'nanos' }
const FORMS = Object.values(FLEET_SEEN_LINES).map((form) => form.strict())
const DEVICE_FORMS = Object.values(SEEN_LINES).map((form) => form.strict())

type Line = Readonly<Record<string, unknown>> & {
  readonly device?: string
  readonly address?: string
  readonly packets?: string
  readonly bytes?: string
  readonly firstNs?: string
  readonly lastNs?: string
  readonly error?: { readonly code: string }
}

function linesOf(body: Buffer, forms: typeof FORMS | typeof DEVICE_FORMS = FORMS): readonly Line[] {
  const lines = body
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
  for (const line of lines)
    assert.ok(
      forms.some((form) => form.safeParse(line).success),
      JSON.stringify(line),
    )
  return lines
}

interface Asking extends HttpGetOptions {
  readonly path?: string
}

async function search(
  gateway: TempGateway,
  user: string,
  pairs: Readonly<Record<string, string>>,
  { path = '/v1/seen', ...options }: Asking = {},
) {
  const query = new URLSearchParams({ ...RANGE, ...pairs }).toString()
  return await httpGet(`${gateway.url}${path}?${query}`, { headers: gateway.basic(user), ...options })
}

const random = seededRandom()

describe(`three appliances, of which one is down (SEED=${random.seed})`, () => {
  let gateway: TempGateway
  const appliances: TempAppliance[] = []
  const captures = new Map<string, Buffer>()
  const owned = new AsyncDisposableStack()

  before(async () => {
    const redis = owned.use(await TempRedis.create())
    for (const name of ['a', 'b', 'down']) {
      const appliance = owned.use(await startTempAppliance({ config: { deviceName: name } }))
      const packets = Array.from({ length: PACKETS }, (_, index) =>
        randomMixedPacket(random, START_NS + BigInt(index) * 100_000_000n),
      )
      const pcap = makePcap(packets)
      const path = join(appliance.folder, 'x.pcap')
      await writeFile(path, pcap)
      await appliance.importFiles('x', path)
      captures.set(name, pcap)
      appliances.push(appliance)
    }
    process.env.SEEN_PASSWORD = (appliances[0]?.credentials('full') ?? '').split(':')[1] ?? ''
    const devices = ['a', 'b', 'down'].map((name, index) => ({
      name,
      url: appliances[index]?.url,
      user: 'full',
      password: { env: 'SEEN_PASSWORD' },
    }))
    gateway = owned.use(
      await startTempGateway([], redis.url, { devices }, [
        { name: 'of-a', role: 'user', devices: 'a' },
        { name: 'dns', role: 'user', filter: 'udp port 53' },
        { name: 'short', role: 'user', spanMaxS: 10 },
      ]),
    )
    await appliances[2]?.closeAppliance(0)
  })
  after(() => owned.disposeAsync())

  test('each has its lines, and the one that is down is named', async () => {
    const answer = await search(gateway, 'user', { Address: '10.0.0.1' })
    assert.equal(answer.status, 200, answer.body.toString())
    assert.equal(answer.headers['content-type'], 'application/x-ndjson')
    const lines = linesOf(answer.body)
    const end = lines.at(-1)
    assert.deepEqual(end, {
      end: true,
      addresses: 1,
      devices: 3,
      complete: false,
      unanswered: ['down'],
      partial: [],
      agedOut: [],
      otherLinkTypes: [],
    })
    const found = lines.filter(({ address }) => address !== undefined)
    assert.deepEqual(found.map(({ device }) => device).toSorted(), ['a', 'b'])
    assert.ok(found.every(({ packets }) => packets === undefined))
    const failed = lines.filter(({ error }) => error !== undefined)
    assert.deepEqual(
      failed.map(({ device, error }) => [device, error?.code]),
      [['down', 'device-unreachable']],
    )
  })

  test('without it the answer is complete', async () => {
    const lines = linesOf((await search(gateway, 'user', { Address: '10.0.0.1', Device: 'a,b' })).body)
    assert.deepEqual([lines.at(-1)?.complete, lines.at(-1)?.devices], [true, 2])
  })

  /** By device and filters: each start of tcpdump costs much more than its work. */
  const known = new Map<string, Buffer>()
  function ofDevice(device: string, ...filters: readonly (string | undefined)[]): Buffer {
    const [last, ...before] = filters.toReversed()
    const key = [device, ...filters].join('|')
    const found =
      known.get(key) ??
      (filters.length === 0
        ? (captures.get(device) ?? Buffer.alloc(0))
        : filtered(ofDevice(device, ...before.toReversed()), last ?? ''))
    known.set(key, found)
    return found
  }

  /** What tcpdump finds, also after VLAN tags. */
  function expectedOf(device: string, address: string, filter?: string): Omit<Line, 'address'> | undefined {
    const host = `host ${address} or (vlan and (host ${address} or (vlan and host ${address})))`
    const { records } = readPcap(ofDevice(device, filter, host))
    if (records.length === 0) return undefined
    return {
      device,
      packets: String(records.length),
      bytes: String(records.reduce((sum, { originalLength }) => sum + originalLength, 0)),
      firstNs: String(records[0]?.ns),
      lastNs: String(records.at(-1)?.ns),
    }
  }

  const hosts = Array.from({ length: 12 }, (_, index) => `10.0.0.${index}`)
  async function assertCounts(
    user: string,
    pairs: Readonly<Record<string, string>>,
    filter?: string,
  ): Promise<readonly Line[]> {
    const answer = await search(gateway, user, {
      Address: hosts.join(),
      Device: 'a,b',
      Verify: '1',
      ...pairs,
    })
    assert.equal(answer.status, 200, answer.body.toString())
    const lines = linesOf(answer.body)
    for (const address of hosts)
      for (const device of ['a', 'b']) {
        const found = lines.find((line) => line.device === device && line.address === address)
        const expected = expectedOf(device, address, filter)
        const text = `${device} ${address}`
        if (expected === undefined) assert.equal(found, undefined, text)
        else assert.deepEqual(found, { ...expected, address, spans: [] }, text)
      }
    assert.equal(lines.at(-1)?.complete, true)
    return lines
  }

  test('verified, they are the counts of tcpdump', async () => {
    const lines = await assertCounts('user', {})
    assert.ok(lines.some((line) => 'checkedBytes' in line))
    await assertCounts('user', { FilterBPF: 'tcp' }, 'tcp')
  })

  test('callers with a filter get only counts, of what passes it', async () => {
    const lines = await assertCounts('dns', {}, 'udp port 53')
    assert.ok(!lines.some((line) => 'checkedBytes' in line))
    await assertCounts('dns', { FilterBPF: 'greater 150' }, '(udp port 53) and (greater 150)')
    for (const [pairs, status, code] of [
      [{}, 400, 'bad-parameter'],
      [{ Verify: '1', FilterBPF: ') or (tcp' }, 400, 'bad-bpf'],
    ] as const) {
      for (const path of ['/v1/seen', '/devices/a/api/v1/seen']) {
        const refused = await search(gateway, 'dns', { Address: '10.0.0.1', ...pairs }, { path })
        assert.deepEqual([refused.status, refused.json().code], [status, code], path)
      }
    }
  })

  test('below a device it is the answer of that device, within the same bounds', async () => {
    const path = '/devices/a/api/v1/seen'
    const pairs = { Address: hosts.join(), Verify: '1' }
    const through = await search(gateway, 'user', pairs, { path })
    const query = new URLSearchParams({ ...RANGE, ...pairs }).toString()
    const direct = await appliances[0]?.get(`/api/v1/seen?${query}`)
    assert.deepEqual(
      linesOf(through.body, DEVICE_FORMS),
      linesOf(direct?.body ?? Buffer.alloc(0), DEVICE_FORMS),
    )
    const counted = linesOf((await search(gateway, 'dns', pairs, { path })).body, DEVICE_FORMS)
    for (const address of hosts) {
      const { device: _, ...expected } = expectedOf('a', address, 'udp port 53') ?? {}
      const found = counted.find((line) => line.address === address)
      assert.equal(found?.packets, expected.packets, address)
    }
    const away = await search(gateway, 'user', pairs, { path: '/devices/down/api/v1/seen' })
    assert.deepEqual([away.status, away.json().code], [502, 'device-unreachable'])
    const local = await search(
      gateway,
      'user',
      { ...pairs, TSBegin: '20261102_000000', TSEnd: '20261103_000000', TSUnit: 'YYYYMMDD_HHMMSS' },
      { path },
    )
    assert.equal(local.status, 200, local.body.toString())
  })

  test('devices outside of the bounds do not exist, and neither do long ranges', async () => {
    const lines = linesOf((await search(gateway, 'of-a', { Address: '10.0.0.1' })).body)
    assert.deepEqual([lines.at(-1)?.complete, lines.at(-1)?.devices], [true, 1])
    for (const path of ['/v1/seen?Device=b&', '/devices/b/api/v1/seen?']) {
      const query = new URLSearchParams({ ...RANGE, Address: '10.0.0.1' }).toString()
      const hidden = await httpGet(`${gateway.url}${path}${query}`, { headers: gateway.basic('of-a') })
      assert.deepEqual([hidden.status, hidden.json().code], [404, 'unknown-device'])
    }
    for (const path of ['/v1/seen', '/devices/a/api/v1/seen']) {
      const long = await search(gateway, 'short', { Address: '10.0.0.1' }, { path })
      assert.deepEqual([long.status, long.json().code], [403, 'out-of-bounds'])
      const viewer = await search(gateway, 'viewer', { Address: '10.0.0.1' }, { path })
      assert.deepEqual([viewer.status, viewer.json().code], [403, 'insufficient-scope'])
    }
  })

  test('mistakes are refused before a device is asked', async () => {
    for (const [pairs, code] of [
      [{ Address: '10.0.0' }, 'bad-parameter'],
      [{ Address: '# none' }, 'bad-parameter'],
      [{ Address: '10.0.0.1', TSEnd: RANGE.TSBegin }, 'bad-parameter'],
      [{ Address: '10.0.0.1', FilterBPF: 'tcp' }, 'bad-parameter'],
      [{ Address: '10.0.0.1', Verify: '1', FilterBPF: 'nonsense' }, 'bad-bpf'],
      [{ Address: '10.0.0.1', Device: 'nowhere' }, 'unknown-device'],
    ] as const)
      assert.equal((await search(gateway, 'user', pairs)).json().code, code, JSON.stringify(pairs))
    const head = await search(gateway, 'user', { Address: '10.0.0.1' }, { method: 'HEAD' })
    assert.deepEqual([head.status, head.body.length], [200, 0])
  })

  test('ten thousand addresses come as a form or as a text', async () => {
    const list = Array.from({ length: 10_000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
    const pairs = { Device: 'a', Verify: '1' }
    const headers = gateway.basic('user')
    const asText = await search(gateway, 'user', pairs, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'text/plain' },
      body: `# indicators\n${list.join('\n')}\n`,
    })
    const asForm = await search(gateway, 'user', pairs, {
      method: 'POST',
      headers: { ...headers, ...FORM },
      body: `Address=${list.join('+')}`,
    })
    for (const { status, body } of [asText, asForm]) {
      assert.equal(status, 200, body.toString())
      const lines = linesOf(body)
      assert.equal(lines.at(-1)?.addresses, 10_000)
      assert.deepEqual(
        lines.filter(({ address }) => address !== undefined).map(({ address }) => address),
        hosts.filter((address) => expectedOf('a', address) !== undefined),
      )
    }
  })

  test('the audit has who searched for what, and the result', async () => {
    const searches = async (user: string): Promise<readonly AuditEntry[]> =>
      (await auditEntries(join(gateway.config.home, 'audit'))).filter(
        (entry) => entry.user === user && entry.event.startsWith('seen.'),
      )
    const before = (await searches('full')).length
    await search(gateway, 'full', { Address: '10.0.0.1, 10.0.0.0/30', Verify: '1', FilterBPF: 'udp' })
    const many = Array.from({ length: 300 }, (_, index) => `10.0.1.${index % 250}/32,10.0.2.${index % 250}`)
    await search(gateway, 'full', { Address: many.join(), Device: 'a' })
    const [first, firstEnd, second, secondEnd] = (await searches('full')).slice(before)
    assert.deepEqual(
      [first?.event, first?.addresses, first?.addressCount, first?.addressesHash, first?.verify],
      ['seen.begin', ['10.0.0.1', '10.0.0.0/30'], 2, undefined, true],
    )
    assert.deepEqual([first?.devices, first?.filters], [['a', 'b', 'down'], { FilterBPF: 'udp' }])
    assert.deepEqual([first?.beginNs, first?.endNs], [RANGE.TSBegin, RANGE.TSEnd])
    assert.deepEqual(
      [firstEnd?.event, firstEnd?.outcome, firstEnd?.unanswered, firstEnd?.partial],
      ['seen.end', 'incomplete', ['down'], []],
    )
    assert.equal(first?.requestId, firstEnd?.requestId)
    assert.equal((second?.addresses as readonly string[] | undefined)?.length, 100)
    assert.match(String(second?.addressesHash), /^[0-9a-f]{64}$/)
    assert.equal(second?.addressCount, 500)
    assert.equal(secondEnd?.outcome, 'complete')
  })
})

function filtered(pcap: Buffer, filter: string): Buffer {
  if (filter === '') return pcap
  return execFileSync('tcpdump', ['-r', '-', '-w', '-', '--time-stamp-precision=nano', filter], {
    input: pcap,
    maxBuffer: 100_000_000,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
}

const SPANS = [{ fromNs: String(START_NS), toNs: String(START_NS + 1n) }]
const END = { end: true, addresses: 1, complete: true, otherLinkTypes: [] }
const COUNT = { packets: '1', bytes: '60', firstNs: String(START_NS), lastNs: String(START_NS) }

/** Answers with lines. */
function sends(...lines: readonly object[]): (res: ServerResponse) => void {
  return (res) => void res.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

function refuses(status: number, code: string): (res: ServerResponse) => void {
  return (res) => {
    res.writeHead(status, { 'Content-Type': 'application/problem+json' })
    res.end(JSON.stringify({ code, detail: code }))
  }
}

const SEEN = '/api/v1/seen'
const SEEN_ONE = sends({ address: '10.0.0.1', spans: SPANS }, END)

describe('devices that fail', () => {
  test('of 64 devices two are down: both are named', async () => {
    await using world = await startWorld(Array.from({ length: 64 }, (_, index) => `d${index}`))
    for (const device of world.devices) device.handlers.set(SEEN, SEEN_ONE)
    await world.devices[7]?.kill()
    await world.devices[40]?.kill()
    const lines = linesOf((await search(world.gateway, 'user', { Address: '10.0.0.1' })).body)
    const end = lines.at(-1)
    assert.deepEqual([end?.complete, end?.devices, end?.unanswered], [false, 64, ['d40', 'd7']])
    assert.equal(new Set(lines.filter(({ address }) => address).map(({ device }) => device)).size, 62)
    assert.deepEqual(
      lines
        .filter(({ error }) => error)
        .map(({ device, error }) => `${device} ${error?.code}`)
        .toSorted(),
      ['d40 device-unreachable', 'd7 device-unreachable'],
    )
  })

  test('each is named with what is wrong with it', async () => {
    const handlers: Readonly<Record<string, ((res: ServerResponse) => void) | undefined>> = {
      good: SEEN_ONE,
      old: undefined,
      foreign: undefined,
      lies: sends({ address: '10.0.0.2', spans: SPANS }, END),
      cut: sends({ address: '10.0.0.1', spans: SPANS }),
      failed: sends({ error: { code: 'store-unavailable', detail: '/x' } }),
      gone: refuses(410, 'aged-out'),
      part: sends({ address: '10.0.0.1', spans: SPANS }, { ...END, complete: false, otherLinkTypes: [127] }),
      trimmed: sends({ ...END, agedOutBeforeNs: String(START_NS + 5n) }),
    }
    await using world = await startWorld(Object.keys(handlers))
    for (const device of world.devices) {
      const handler = handlers[device.name]
      if (handler !== undefined) device.handlers.set(SEEN, handler)
      if (device.name === 'foreign') device.behaviour = { isForeign: true }
    }
    await eventually(async () => (await kindOf(world.gateway, 'foreign')) === 'api', {
      message: 'the gateway notices the kind of the device',
    })
    const lines = linesOf((await search(world.gateway, 'user', { Address: '10.0.0.1' })).body)
    assert.deepEqual(
      Object.fromEntries(
        lines.filter(({ error }) => error).map(({ device, error }) => [device, error?.code]),
      ),
      {
        old: 'seen-unsupported',
        foreign: 'seen-unsupported',
        lies: 'device-protocol',
        cut: 'device-unreachable',
        failed: 'store-unavailable',
      },
    )
    assert.deepEqual(lines.at(-1), {
      end: true,
      addresses: 1,
      devices: 9,
      complete: false,
      unanswered: ['cut', 'failed', 'foreign', 'lies', 'old'],
      partial: ['part'],
      agedOut: [
        { device: 'gone', beforeNs: RANGE.TSEnd },
        { device: 'trimmed', beforeNs: String(START_NS + 5n) },
      ],
      otherLinkTypes: [{ device: 'part', linkTypes: [127] }],
    })
    assert.ok(
      !world.devices.find(({ name }) => name === 'foreign')?.requests.some(({ url }) => url.startsWith(SEEN)),
      'a third-party device is not asked',
    )
    const below = await search(
      world.gateway,
      'user',
      { Address: '10.0.0.1' },
      { path: '/devices/old/api/v1/seen' },
    )
    assert.deepEqual([below.status, below.json().code], [501, 'seen-unsupported'])
  })

  test('one that does not prove that it filters is not asked for callers with a filter', async () => {
    await using world = await startWorld(['proved', 'silent'], [{ name: 'dns', role: 'user', filter: 'udp' }])
    const [proved, silent] = world.devices
    for (const device of world.devices)
      device.handlers.set(SEEN, sends({ address: '10.0.0.1', ...COUNT, spans: [] }, END))
    if (proved) proved.behaviour = { estimateProblem: { status: 400, body: { code: 'bad-bpf' } } }
    silent?.answers.set('/api/v1/pcap/estimate', { packets: '0' })
    const lines = linesOf((await search(world.gateway, 'dns', { Address: '10.0.0.1', Verify: '1' })).body)
    assert.deepEqual(lines.at(-1)?.unanswered, ['silent'])
    assert.deepEqual(
      lines.filter(({ address }) => address).map(({ device }) => device),
      ['proved'],
    )
    assert.ok(!silent?.requests.some(({ url }) => url.startsWith(SEEN)))
    const asked = proved?.requests.find(({ url }) => url.startsWith(SEEN))
    assert.equal(asked?.headers['capfleet-forced-filter'], 'true')
    assert.match(asked?.url ?? '', /FilterBPF=udp&/)
  })
})

describe('streams of devices, with Verify', () => {
  test('a device without a free stream does not hold the others, and is named when the wait is over', async () => {
    await using world = await startWorld(['busy', 'free'])
    const [busy, free] = world.devices
    if (busy) busy.behaviour = { hangAfterBytes: 24 }
    for (const device of world.devices)
      device.handlers.set(SEEN, sends({ address: '10.0.0.1', ...COUNT, spans: [] }, END))
    const range = `TSBegin=${RANGE.TSBegin}&TSEnd=${RANGE.TSEnd}`
    await using taken = new AsyncDisposableStack()
    for (let count = 0; count < 4; count += 1)
      taken.use(
        await httpOpen(`${world.gateway.url}/devices/busy/api/v1/pcap/timerange?${range}`, {
          headers: world.gateway.as.full,
        }),
      )
    const pairs = { Address: '10.0.0.1', Verify: '1' }
    const lines = linesOf((await search(world.gateway, 'user', { ...pairs, Wait: '5' })).body)
    assert.deepEqual(
      new Map(lines.map(({ device, error, address }) => [device, error?.code ?? address])),
      new Map([
        ['free', '10.0.0.1'],
        ['busy', 'queue-timeout'],
        [undefined, undefined],
      ]),
    )
    assert.equal(free?.overruns, 0)
    // Without Verify there is nothing to wait for.
    for (const device of world.devices) device.handlers.set(SEEN, SEEN_ONE)
    const unverified = linesOf((await search(world.gateway, 'user', { Address: '10.0.0.1' })).body)
    assert.equal(unverified.at(-1)?.complete, true)
  })

  test('a device that another client keeps busy is asked again', async () => {
    await using world = await startWorld(['busy'])
    let asked = 0
    world.devices[0]?.handlers.set(SEEN, (res) => {
      asked += 1
      if (asked === 1) refuses(503, 'download-slots-exhausted')(res)
      else sends({ address: '10.0.0.1', ...COUNT, spans: [] }, END)(res)
    })
    const answer = await search(world.gateway, 'user', { Address: '10.0.0.1', Verify: '1', Wait: '300' })
    assert.equal(linesOf(answer.body).at(-1)?.complete, true)
    assert.equal(asked, 2)
  })

  test('a client that leaves frees the streams, and closes the connections to the devices', async () => {
    await using world = await startWorld(['a', 'b'])
    let open = 0
    for (const device of world.devices)
      device.handlers.set(SEEN, (res) => {
        open += 1
        res.once('close', () => {
          open -= 1
        })
        res.write('{"checkedBytes":"1"}\n')
      })
    const query = new URLSearchParams({ ...RANGE, Address: '10.0.0.1', Verify: '1' }).toString()
    for (const path of ['/v1/seen', '/devices/a/api/v1/seen']) {
      const devices = path === '/v1/seen' ? 2 : 1
      {
        using _leaving = await httpOpen(`${world.gateway.url}${path}?${query}`, {
          headers: world.gateway.as.user,
        })
        await eventually(() => open === devices, { message: 'the devices are asked' })
        assert.equal((await queueOf(world.gateway)).length, devices)
      }
      await eventually(() => open === 0, { message: 'the connections are closed' })
      await eventually(async () => (await queueOf(world.gateway)).length === 0, {
        message: 'the streams are free',
      })
    }
    await eventually(
      async () =>
        (await metric(world.gateway, 'capfleet_seen_total{outcome="client-gone",verified="true"}')) === 2,
      { message: 'it is counted' },
    )
  })

  test('the stream is free once a device has counted, however slowly the rest is read', async () => {
    await using world = await startWorld(['a'])
    const finish = Promise.withResolvers<void>()
    world.devices[0]?.handlers.set(SEEN, (res) => {
      res.write(`${JSON.stringify({ address: '10.0.0.1', ...COUNT, spans: [] })}\n`)
      void finish.promise.then(() => sends(END)(res))
    })
    const answer = search(world.gateway, 'user', { Address: '10.0.0.1', Verify: '1' })
    await eventually(() => world.devices[0]?.requests.some(({ url }) => url.startsWith(SEEN)) === true, {
      message: 'it is asked',
    })
    await eventually(async () => (await queueOf(world.gateway)).length === 0, {
      message: 'the stream is free',
    })
    finish.resolve()
    assert.equal(linesOf((await answer).body).at(-1)?.complete, true)
  })

  test('it counts as a download for quotas, and a user has a few searches at a time', async () => {
    await using world = await startWorld(['a'], [{ name: 'one', role: 'user', streamsMax: 1 }])
    world.devices[0]?.handlers.set(SEEN, (res) => void res.write('{"checkedBytes":"1"}\n'))
    const query = new URLSearchParams({ ...RANGE, Address: '10.0.0.1', Verify: '1' }).toString()
    using _running = await httpOpen(`${world.gateway.url}/v1/seen?${query}`, {
      headers: world.gateway.basic('one'),
    })
    const second = await search(world.gateway, 'one', { Address: '10.0.0.1', Verify: '1' })
    assert.deepEqual([second.status, second.json().code], [429, 'stream-quota'])
    await using running = new AsyncDisposableStack()
    for (let count = 0; count < 8; count += 1)
      running.use(await httpOpen(`${world.gateway.url}/v1/seen?${query}`, { headers: world.gateway.as.user }))
    const ninth = await search(world.gateway, 'user', { Address: '10.0.0.1' })
    assert.deepEqual([ninth.status, ninth.json().code], [429, 'too-many-requests'])
    assert.match(String(ninth.json().detail), /8 of your clients search for addresses already/)
  })
})

interface World extends AsyncDisposable {
  readonly gateway: TempGateway
  readonly devices: readonly FakeDevice[]
}

async function startWorld(
  names: readonly string[],
  bounded: Parameters<typeof startTempGateway>[3] = [],
): Promise<World> {
  await using starting = new AsyncDisposableStack()
  const redis = starting.use(await TempRedis.create())
  const devices = await startFakeFleet(3, [...names])
  for (const device of devices) starting.use(device)
  const gateway = starting.use(await startTempGateway(devices, redis.url, {}, bounded))
  const owned = starting.move()
  return { gateway, devices, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

async function kindOf(gateway: TempGateway, name: string): Promise<unknown> {
  return (await httpGet(`${gateway.url}/v1/devices/${name}`, { headers: gateway.as.user })).json().kind
}

async function queueOf(gateway: TempGateway): Promise<readonly unknown[]> {
  const answer = await httpGet(`${gateway.url}/v1/queue`, { headers: gateway.as.user })
  return answer.json().requests as readonly unknown[]
}

async function metric(gateway: TempGateway, name: string): Promise<number> {
  const { body } = await httpGet(`${gateway.url}/metrics`)
  const line = body
    .toString()
    .split('\n')
    .find((one) => one.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1))
}
