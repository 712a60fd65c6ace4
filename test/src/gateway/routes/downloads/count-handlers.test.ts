// /v1/count: the packets and bytes of the download over the fleet, or an honest bound; no device is missing silently.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { COUNT_LINES, FLEET_COUNT_LINES } from '../../../../../src/shared/contract/count-lines.ts'
import { auditEntries } from '../../../../support/access/temp-audit.ts'
import type { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { startFakeFleet } from '../../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../../support/eventually.ts'
import { type HttpAnswer, httpGet, httpOpen } from '../../../../support/http-get.ts'
import { randomMixedPacket } from '../../../../support/packets/mixed-packets.ts'
import { makePcap } from '../../../../support/packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'

const START_NS = 1_793_610_000_000_000_000n
const STEP_NS = 10_000_000n
const PACKETS = 2_000
const RANGE = {
  TSBegin: String(START_NS),
  TSEnd: String(START_NS + STEP_NS * BigInt(PACKETS)),
  TSUnit: 'nanos',
}
const FORMS = Object.values(FLEET_COUNT_LINES).map((form) => form.strict())
const DEVICE_FORMS = Object.values(COUNT_LINES).map((form) => form.strict())
const COUNT = '/api/v1/pcap/count'

type Pairs = Readonly<Record<string, string>>
type Line = Readonly<Record<string, unknown>> & {
  readonly device?: string
  readonly error?: { readonly code: string }
}

function linesOf(answer: HttpAnswer, forms: typeof FORMS | typeof DEVICE_FORMS = FORMS): readonly Line[] {
  assert.equal(answer.status, 200, answer.body.toString())
  const lines = answer.body
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

async function ask(
  gateway: TempGateway,
  user: string,
  pairs: Pairs,
  path = '/v1/count',
  method = 'GET',
): Promise<HttpAnswer> {
  const query = new URLSearchParams({ ...RANGE, ...pairs }).toString()
  return await httpGet(`${gateway.url}${path}?${query}`, {
    headers: { ...gateway.basic(user), te: 'trailers' },
    method,
  })
}

async function endOf(gateway: TempGateway, user: string, pairs: Pairs): Promise<Line> {
  return linesOf(await ask(gateway, user, pairs)).at(-1) ?? {}
}

async function downloaded(
  gateway: TempGateway,
  user: string,
  pairs: Pairs,
): Promise<{ readonly packets: unknown; readonly bytes: string }> {
  const answer = await ask(gateway, user, pairs, '/api/v1/pcap/timerange')
  assert.equal(answer.status, 200, answer.body.toString())
  return { packets: answer.trailers['capfleet-packets'], bytes: String(answer.body.length) }
}

const random = seededRandom()

describe(`two appliances (SEED=${random.seed})`, () => {
  let gateway: TempGateway
  const appliances: TempAppliance[] = []
  const owned = new AsyncDisposableStack()

  before(async () => {
    const redis = owned.use(await TempRedis.create())
    for (const name of ['a', 'b']) {
      const appliance = owned.use(await startTempAppliance({ config: { deviceName: name } }))
      const packets = Array.from({ length: PACKETS }, (_, index) =>
        randomMixedPacket(random, START_NS + BigInt(index) * STEP_NS),
      )
      const path = join(appliance.folder, 'x.pcap')
      await writeFile(path, makePcap(packets))
      await appliance.importFiles(`of-${name}`, path)
      appliances.push(appliance)
    }
    process.env.COUNT_PASSWORD = (appliances[0]?.credentials('full') ?? '').split(':')[1] ?? ''
    const devices = ['a', 'b'].map((name, index) => ({
      name,
      url: appliances[index]?.url,
      user: 'full',
      password: { env: 'COUNT_PASSWORD' },
    }))
    gateway = owned.use(
      await startTempGateway([], redis.url, { devices }, [
        { name: 'of-a', role: 'user', devices: 'a' },
        { name: 'dns', role: 'user', filter: 'udp port 53' },
        { name: 'short', role: 'user', spanMaxS: 10 },
      ]),
    )
  })
  after(() => owned.disposeAsync())

  const filters = ['udp', 'greater 150', 'less 200', 'udp port 53 or tcp port 443', 'host 10.0.0.3']

  test('it equals the download, of one device and of two, with a forced filter too', async () => {
    for (let round = 0; round < 24; round++) {
      const user = random.pick(['user', 'dns', 'of-a'])
      const isOne = user === 'of-a' || random.next() < 0.3
      const maybe = (pairs: Pairs, odds = 0.4): Pairs => (random.next() < odds ? pairs : {})
      const fromNs = START_NS + BigInt(random.integer(0, PACKETS / 2)) * STEP_NS
      const pairs = {
        TSBegin: String(fromNs),
        TSEnd: String(fromNs + BigInt(random.integer(1, 12_000)) * 1_000_000n),
        ...maybe({ FilterBPF: random.pick(filters) }),
        ...maybe({ Slice: String(random.integer(1, 200)) }),
        ...maybe({ Strip: random.pick(['vlan', 'all']) }),
        ...maybe({ TSMode: 'vendorB_erspan3' }, 0.2),
        ...(isOne ? { Device: 'a' } : {}),
        ...(isOne ? maybe({ Dedup: '1000000000' }) : {}),
        ...(isOne ? maybe({ MaxPackets: String(random.integer(1, 400)) }) : {}),
        ...(isOne ? maybe({ MaxBytes: String(random.integer(24, 40_000)) }) : {}),
        ...(isOne ? maybe({ TSMax: String(random.integer(1, 3_000_000_000)) }) : {}),
      }
      const expected = await downloaded(gateway, user, pairs)
      const lines = linesOf(await ask(gateway, user, pairs))
      const devices = isOne ? 1 : 2
      const text = `${user} ${JSON.stringify(pairs)}`
      assert.deepEqual(
        lines.at(-1),
        { end: true, ...expected, exact: true, complete: true, devices, unanswered: [], partial: [] },
        text,
      )
      const counted = lines.filter((line) => line.counted === true)
      const sum = counted.reduce((before, { packets }) => before + BigInt(String(packets)), 0n)
      assert.equal(String(sum), expected.packets, text)
      if (user === 'dns')
        assert.deepEqual(
          lines.map((line) => ('checkedBytes' in line || 'rangeBytes' in line ? line : undefined)),
          lines.map(() => undefined),
          `how much is stored is hidden: ${text}`,
        )
      else
        assert.ok(
          lines.some((line) => 'checkedBytes' in line && line.counted !== true),
          text,
        )
    }
  })

  test('of several devices, what only a merge knows is a bound, and says so', async () => {
    const filter = { FilterBPF: 'udp' }
    const whole = await downloaded(gateway, 'user', filter)
    const [packets, bytes] = [Number(whole.packets), Number(whole.bytes)]
    for (const [pairs, expected] of [
      [{ MaxPackets: String(packets) }, { ...whole, exact: true }],
      // The packet that is left out has a record of 16 bytes at least.
      [
        { MaxPackets: String(packets - 1) },
        { packets: String(packets - 1), bytes: String(bytes - 16), exact: false },
      ],
      [{ MaxBytes: whole.bytes }, { ...whole, exact: true }],
      [
        { MaxBytes: String(bytes - 1) },
        { packets: String(packets - 1), bytes: String(bytes - 16), exact: false },
      ],
      [
        { MaxPackets: '10', Slice: '20' },
        { packets: '10', bytes: String(24 + 10 * 36), exact: false },
      ],
      [{ Dedup: '1000000' }, { ...whole, exact: false }],
      [{ TSMax: '1000000000000000' }, { ...whole, exact: false }],
      [
        { Dedup: '1000000', FilterBPF: 'less 1' },
        { packets: '0', bytes: '24', exact: true },
      ],
    ] as const) {
      const end = await endOf(gateway, 'user', { ...filter, ...pairs })
      const { packets, bytes, exact, complete } = end
      assert.deepEqual(
        { packets, bytes, exact, complete },
        { ...expected, complete: true },
        JSON.stringify(pairs),
      )
      const delivered = await downloaded(gateway, 'user', { ...filter, ...pairs })
      assert.ok(Number(delivered.packets) <= Number(packets), JSON.stringify(pairs))
      assert.ok(Number(delivered.bytes) <= Number(bytes), JSON.stringify(pairs))
    }
  })

  test('a limit of bytes leaves a part, and says which devices', async () => {
    const pairs = { FilterBPF: 'udp port 53', CountBytesMax: '20000' }
    const lines = linesOf(await ask(gateway, 'user', pairs))
    const end = lines.at(-1)
    assert.deepEqual([end?.exact, end?.complete, end?.partial], [false, false, ['a', 'b']])
    for (const device of ['a', 'b']) {
      const counted = lines.find((line) => line.device === device && line.counted === true)
      const part = { ...pairs, Device: device, TSEnd: String(counted?.countedToNs) }
      const { packets, bytes } = await downloaded(gateway, 'user', part)
      assert.deepEqual([counted?.packets, counted?.bytes], [packets, bytes], device)
    }
    const forced = await endOf(gateway, 'dns', { CountBytesMax: '1' })
    assert.deepEqual(
      [forced.packets, forced.complete],
      [(await downloaded(gateway, 'dns', {})).packets, true],
    )
  })

  test('a capture is counted on the device that holds it; below a device it is the answer of that device', async () => {
    const query = 'StreamName=of-b&FilterBPF=udp+port+53'
    const headers = { ...gateway.basic('user'), te: 'trailers' }
    const single = await httpGet(`${gateway.url}/api/v1/pcap/single?${query}`, { headers })
    const expected = { packets: single.trailers['capfleet-packets'], bytes: String(single.body.length) }
    const root = linesOf(await httpGet(`${gateway.url}/v1/count?${query}`, { headers })).at(-1)
    assert.deepEqual([root?.packets, root?.bytes, root?.devices], [expected.packets, expected.bytes, 1])
    const direct = await appliances[1]?.get(`${COUNT}?${query}`)
    const through = await httpGet(`${gateway.url}/devices/b${COUNT}?${query}`, { headers })
    assert.deepEqual(
      linesOf(through, DEVICE_FORMS).at(-1),
      JSON.parse(direct?.body.toString().trimEnd().split('\n').at(-1) ?? ''),
    )
    const filtered = await httpGet(`${gateway.url}/devices/b${COUNT}?StreamName=of-b`, {
      headers: gateway.basic('dns'),
    })
    assert.deepEqual(linesOf(filtered, DEVICE_FORMS), [
      { end: true, ...expected, complete: true, corruptBlocks: '0' },
    ])
  })

  test('who may not download may not count, and mistakes are refused first', async () => {
    for (const path of ['/v1/count', `/devices/b${COUNT}`]) {
      for (const [user, pairs, status, code] of [
        ['viewer', {}, 403, 'insufficient-scope'],
        ['short', {}, 403, 'out-of-bounds'],
        ['user', { FilterBPF: 'nonsense' }, 400, 'bad-bpf'],
        ['user', { Follow: '1' }, 400, 'bad-parameter'],
        ['user', { CountBytesMax: '-1' }, 400, 'bad-parameter'],
        ['dns', { FilterBPF: ') or (tcp' }, 400, 'bad-bpf'],
        ['dns', { FilterBPFDecap: 'true' }, 403, 'out-of-bounds'],
        ['of-a', { Device: 'b' }, 404, 'unknown-device'],
      ] as const) {
        const refused = await ask(gateway, user, pairs, path)
        assert.deepEqual([refused.status, refused.json().code], [status, code], `${user} ${path}`)
      }
    }
    const head = await ask(gateway, 'user', {}, '/v1/count', 'HEAD')
    assert.deepEqual([head.status, head.body.length], [200, 0])
  })

  test('the audit has who counted what, and the result', async () => {
    const counts = async () =>
      (await auditEntries(join(gateway.config.home, 'audit'))).filter(
        ({ user, event }) => user === 'full' && event.startsWith('count.'),
      )
    await ask(gateway, 'full', { FilterBPF: 'udp' })
    const [begin, end, ...others] = await counts()
    assert.deepEqual(others, [])
    assert.deepEqual(
      [begin?.event, begin?.path, begin?.devices, begin?.filters, begin?.beginNs, begin?.endNs],
      ['count.begin', '/v1/count', ['a', 'b'], { FilterBPF: 'udp' }, RANGE.TSBegin, RANGE.TSEnd],
    )
    assert.deepEqual([end?.event, end?.outcome, end?.unanswered], ['count.end', 'complete', []])
    assert.equal(begin?.requestId, end?.requestId)
  })
})

const PROGRESS = { packets: '1', bytes: '100', checkedBytes: '10', rangeBytes: '20' }
const END = { end: true, packets: '3', bytes: '300', complete: true }

/** Answers as a capfleet device does, with lines. */
function sends(...lines: readonly object[]): (res: ServerResponse) => void {
  return (res) => void res.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

function refuses(status: number, code: string): (res: ServerResponse) => void {
  return (res) => {
    res.writeHead(status, { 'Content-Type': 'application/problem+json' })
    res.end(JSON.stringify({ code, detail: code }))
  }
}

describe('devices that fail', () => {
  test('each is named with what is wrong with it, and the answer is not called complete', async () => {
    const handlers: Readonly<Record<string, ((res: ServerResponse) => void) | undefined>> = {
      good: sends(PROGRESS, { ...END, checkedBytes: '20', rangeBytes: '20' }),
      old: refuses(404, 'not-found'),
      other: (res) => void res.end(makePcap([])),
      foreign: undefined,
      lies: sends({ ...END, packets: '-3' }),
      talks: sends(END, END),
      cut: sends(PROGRESS),
      failed: sends({ error: { code: 'store-unavailable', detail: '/x' } }),
      gone: refuses(410, 'aged-out'),
      part: sends({ ...END, complete: false, countedToNs: RANGE.TSBegin }),
      ignores: (res) => {
        res.setHeader('Capfleet-Ignored', 'FilterBPF')
        sends(END)(res)
      },
    }
    await using world = await startWorld(Object.keys(handlers))
    for (const device of world.devices) {
      const handler = handlers[device.name]
      if (handler !== undefined) device.handlers.set(COUNT, handler)
      if (device.name === 'foreign') device.behaviour = { isForeign: true }
    }
    await eventually(async () => (await kindOf(world.gateway, 'foreign')) === 'api', {
      message: 'the gateway notices the kind of the device',
    })
    const lines = linesOf(await ask(world.gateway, 'user', { FilterBPF: 'udp' }))
    assert.deepEqual(
      Object.fromEntries(
        lines.filter(({ error }) => error).map(({ device, error }) => [device, error?.code]),
      ),
      {
        old: 'count-unsupported',
        other: 'device-protocol',
        foreign: 'count-unsupported',
        lies: 'device-protocol',
        talks: 'device-protocol',
        cut: 'device-unreachable',
        failed: 'store-unavailable',
        gone: 'aged-out',
        ignores: 'device-protocol',
      },
    )
    const { packets, bytes, exact, complete, devices, unanswered, partial } = lines.at(-1) ?? {}
    assert.deepEqual(
      { exact, complete, devices, unanswered, partial },
      {
        exact: false,
        complete: false,
        devices: 11,
        unanswered: ['cut', 'failed', 'foreign', 'gone', 'ignores', 'lies', 'old', 'other', 'talks'],
        partial: ['part'],
      },
    )
    // That of "talks" may have been passed on before it went on talking.
    assert.ok(['6', '9'].includes(String(packets)), `${packets} packets in ${bytes} bytes`)
    assert.ok(
      !world.devices
        .find(({ name }) => name === 'foreign')
        ?.requests.some(({ url }) => url.startsWith(COUNT)),
      'a third-party device is not asked',
    )
    const below = await ask(world.gateway, 'user', {}, `/devices/old${COUNT}`)
    assert.deepEqual([below.status, below.json().code], [501, 'count-unsupported'])
  })

  test('one that does not prove that it filters, or tells what is hidden, is not believed for callers with a filter', async () => {
    await using world = await startWorld(
      ['proved', 'silent', 'tells'],
      [{ name: 'dns', role: 'user', filter: 'udp' }],
    )
    for (const device of world.devices) {
      device.handlers.set(COUNT, sends(PROGRESS, { ...END, checkedBytes: '20', rangeBytes: '20' }))
      device.behaviour = { estimateProblem: { status: 400, body: { code: 'bad-bpf' } } }
    }
    const [proved, silent, tells] = world.devices
    if (silent !== undefined) silent.behaviour = {}
    silent?.answers.set('/api/v1/pcap/estimate', { packets: '0' })
    tells?.handlers.set(COUNT, sends({ ...END, complete: false, countedToNs: RANGE.TSBegin }))
    const lines = linesOf(await ask(world.gateway, 'dns', {}))
    assert.deepEqual(lines.at(-1)?.unanswered, ['silent', 'tells'])
    assert.deepEqual(
      lines.filter(({ error, device }) => device !== undefined && error === undefined),
      [{ device: 'proved', counted: true, packets: '3', bytes: '300', complete: true }],
    )
    assert.ok(!silent?.requests.some(({ url }) => url.startsWith(COUNT)))
    const asked = proved?.requests.find(({ url }) => url.startsWith(COUNT))
    assert.equal(asked?.headers['capfleet-forced-filter'], 'true')
    assert.match(asked?.url ?? '', /FilterBPF=udp&/)
  })
})

describe('streams of devices', () => {
  test('a device without a free stream does not hold the others, and is named when the wait is over', async () => {
    await using world = await startWorld(['busy', 'free'])
    const [busy, free] = world.devices
    if (busy !== undefined) busy.behaviour = { hangAfterBytes: 24 }
    for (const device of world.devices) device.handlers.set(COUNT, sends(END))
    await using taken = new AsyncDisposableStack()
    for (let count = 0; count < 4; count += 1)
      taken.use(
        await httpOpen(
          `${world.gateway.url}/devices/busy/api/v1/pcap/timerange?${new URLSearchParams(RANGE).toString()}`,
          { headers: world.gateway.as.full },
        ),
      )
    const lines = linesOf(await ask(world.gateway, 'user', { Wait: '5' }))
    assert.deepEqual(
      new Map(lines.map(({ device, error, counted }) => [device, error?.code ?? counted])),
      new Map<unknown, unknown>([
        ['free', true],
        ['busy', 'queue-timeout'],
        [undefined, undefined],
      ]),
    )
    assert.equal(free?.overruns, 0)
  })

  test('a client that leaves frees the streams, and closes the connections to the devices', async () => {
    await using world = await startWorld(['a', 'b'])
    let open = 0
    for (const device of world.devices)
      device.handlers.set(COUNT, (res) => {
        open += 1
        res.once('close', () => {
          open -= 1
        })
        res.write(`${JSON.stringify(PROGRESS)}\n`)
      })
    const query = new URLSearchParams(RANGE).toString()
    for (const path of ['/v1/count', `/devices/a${COUNT}`]) {
      const devices = path === '/v1/count' ? 2 : 1
      {
        using _leaving = await httpOpen(`${world.gateway.url}${path}?${query}`, {
          headers: world.gateway.as.user,
        })
        await eventually(() => open === devices, { message: 'the devices are asked' })
        assert.equal((await queueOf(world.gateway)).length, devices)
        assert.equal(await metric(world.gateway, 'capfleet_counts_running'), 1)
      }
      await eventually(() => open === 0, { message: 'the connections are closed' })
      await eventually(async () => (await queueOf(world.gateway)).length === 0, {
        message: 'the streams are free',
      })
    }
    await eventually(
      async () => (await metric(world.gateway, 'capfleet_counts_total{outcome="client-gone"}')) === 2,
      { message: 'it is counted' },
    )
  })

  test('it counts as a download for quotas, and a user has a few counts at a time', async () => {
    await using world = await startWorld(['a'], [{ name: 'one', role: 'user', streamsMax: 1 }])
    world.devices[0]?.handlers.set(COUNT, (res) => void res.write(`${JSON.stringify(PROGRESS)}\n`))
    const url = `${world.gateway.url}/v1/count?${new URLSearchParams(RANGE).toString()}`
    using _running = await httpOpen(url, { headers: world.gateway.basic('one') })
    const second = await ask(world.gateway, 'one', {})
    assert.deepEqual([second.status, second.json().code], [429, 'stream-quota'])
    await using running = new AsyncDisposableStack()
    for (let count = 0; count < 8; count += 1)
      running.use(await httpOpen(url, { headers: world.gateway.as.user }))
    const ninth = await ask(world.gateway, 'user', {})
    assert.deepEqual([ninth.status, ninth.json().code], [429, 'too-many-requests'])
    assert.match(String(ninth.json().detail), /8 of your clients count packets already/)
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
