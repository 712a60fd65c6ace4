// Searches for addresses at devices that cannot search: their packets are downloaded and counted.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { API_BEGIN_NS, ApiDevice } from '../../../../support/devices/api-device.ts'
import { eventually } from '../../../../support/eventually.ts'
import { httpGet } from '../../../../support/http-get.ts'
import { OWN_LOOPBACK } from '../../../../support/network/own-loopback.ts'
import { randomMixedPacket } from '../../../../support/packets/mixed-packets.ts'
import {
  arp,
  bytesOf,
  ethernet,
  hex,
  ipv4,
  ipv6,
  PROTOCOL,
  TYPE,
  tagged,
  udp,
} from '../../../../support/packets/packet-layers.ts'
import { makePcap } from '../../../../support/packets/packet-maker.ts'
import type { PcapRecord } from '../../../../support/packets/pcap-records.ts'
import { startTempAppliance } from '../../../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

const PACKETS = 400
const STEP_NS = 100_000_000n
const END_NS = API_BEGIN_NS + BigInt(PACKETS) * STEP_NS
const RANGE = { TSBegin: String(API_BEGIN_NS), TSEnd: String(END_NS), TSUnit: 'nanos' }
const HOSTS = Array.from({ length: 12 }, (_, index) => `10.0.0.${index}`)
const DAY_NS = 86_400_000_000_000n
/** A whole day after that of the first packets: the range of a search, and its first time. */
const rangeOfDay = (day: number) => {
  const beginNs = API_BEGIN_NS + BigInt(day) * DAY_NS
  return { TSBegin: String(beginNs), TSEnd: String(beginNs + DAY_NS), beginNs }
}
/** More than two parts of a merge. */
const LARGE = { day: 1, packets: 600, bytes: 1_400 }

interface Line {
  readonly device?: string
  readonly address?: string
  readonly packets?: string
  readonly spans?: readonly object[]
  readonly firstNs?: string
  readonly error?: { readonly code: string; readonly detail: string }
  readonly complete?: boolean
  readonly unanswered?: readonly string[]
  readonly partial?: readonly string[]
}

function largePackets(): readonly PcapRecord[] {
  const captured = ethernet(TYPE.ipv4, ipv4(PROTOCOL.udp, udp(1, 2, Buffer.alloc(LARGE.bytes))))
  return Array.from({ length: LARGE.packets }, (_, index) => ({
    ns: rangeOfDay(LARGE.day).beginNs + BigInt(index) * 1_000_000n,
    originalLength: captured.length,
    captured,
  }))
}

/** What follows the link header in captures of other link types than Ethernet: its type, and the packet. */
const PACKETS_AFTER_LINK: readonly (readonly [type: number, packet: Buffer])[] = [
  [TYPE.ipv4, ipv4(PROTOCOL.udp, udp(1, 2, Buffer.from('plain')))],
  [TYPE.ipv4, ipv4(PROTOCOL.udp, udp(1, 2, Buffer.from('other')), { from: 2, to: 3 })],
  [TYPE.ipv6, ipv6(PROTOCOL.udp, udp(1, 2, Buffer.from('plain')))],
  [TYPE.arp, arp(false, { from: 1, to: 4 })],
  [TYPE.vlan, tagged(7, TYPE.ipv4, ipv4(PROTOCOL.udp, udp(1, 2, Buffer.from('tagged'))))],
  [0x9200, tagged(7, TYPE.ipv4, ipv4(PROTOCOL.udp, udp(1, 2, Buffer.from('of another type'))))],
  [
    TYPE.serviceVlan,
    tagged(8, TYPE.vlan, tagged(7, TYPE.ipv6, ipv6(PROTOCOL.udp, udp(1, 2, Buffer.from('twice'))))),
  ],
  [TYPE.vlan, tagged(8, 0x9200, tagged(7, TYPE.ipv4, ipv4(PROTOCOL.udp, udp(1, 2, Buffer.from('both')))))],
]

interface OtherLink {
  readonly day: number
  readonly linkType: number
  /** undefined: there is no such packet. */
  readonly frame: (type: number, packet: Buffer) => Buffer | undefined
}

const isIp = (type: number) => type === TYPE.ipv4 || type === TYPE.ipv6
const OTHER_LINKS: Readonly<Record<string, OtherLink>> = {
  Ethernet: { day: 2, linkType: 1, frame: (type, packet) => ethernet(type, packet) },
  'raw IP': { day: 3, linkType: 101, frame: (type, packet) => (isIp(type) ? packet : undefined) },
  'Linux cooked v1': {
    day: 4,
    linkType: 113,
    frame: (type, packet) =>
      Buffer.concat([hex('0000', '0001', '0006', '0200000000010000'), bytesOf(type, 2), packet]),
  },
  'Linux cooked v2': {
    day: 5,
    linkType: 276,
    frame: (type, packet) =>
      Buffer.concat([
        bytesOf(type, 2),
        hex('0000', '00000002', '0001', '00', '06', '0200000000010000'),
        packet,
      ]),
  },
}

function otherCapture({ day, linkType, frame }: OtherLink): Buffer {
  const frames = PACKETS_AFTER_LINK.flatMap(([type, packet]) => frame(type, packet) ?? [])
  const records = frames.map((captured, index) => ({
    ns: rangeOfDay(day).beginNs + BigInt(index) * 1_000_000_000n,
    originalLength: captured.length,
    captured,
  }))
  return makePcap(records, { linkType })
}

/** An appliance as it was before it had the path: everything else is passed on. */
async function startOld(url: string, owned: AsyncDisposableStack): Promise<string> {
  const server = createServer((req, res) => {
    if (req.url?.startsWith('/api/v1/seen')) {
      res.writeHead(404, { 'Content-Type': 'application/problem+json' }).end('{"code":"not-found"}')
      return
    }
    const asked = request(new URL(req.url ?? '/', url), { method: req.method, headers: req.headers })
    asked.on('response', (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('end', () => {
        res.addTrailers(answer.trailers as Record<string, string>)
      })
      answer.pipe(res)
    })
    asked.on('error', () => res.destroy())
    res.on('close', () => asked.destroy())
    req.pipe(asked)
  })
  owned.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  server.listen(0, OWN_LOOPBACK)
  await once(server, 'listening')
  return `http://${OWN_LOOPBACK}:${(server.address() as AddressInfo).port}`
}

const random = seededRandom()

describe(`devices that cannot search (SEED=${random.seed})`, () => {
  const owned = new AsyncDisposableStack()
  let gateway: TempGateway
  let foreign: ApiDevice

  before(async () => {
    const redis = owned.use(await TempRedis.create())
    const packets = Array.from({ length: PACKETS }, (_, index) =>
      randomMixedPacket(random, API_BEGIN_NS + BigInt(index) * STEP_NS),
    )
    const appliance = owned.use(await startTempAppliance({ config: { deviceName: 'new' } }))
    const path = join(appliance.folder, 'x.pcap')
    await writeFile(path, makePcap(packets))
    await appliance.importFiles('x', path)
    for (const [name, bytes] of [
      ['large', makePcap(largePackets())],
      ...Object.entries(OTHER_LINKS).map(([link, other]) => [link, otherCapture(other)] as const),
    ] as const) {
      const file = join(appliance.folder, 'other.pcap')
      await writeFile(file, bytes)
      await appliance.importFiles(name.replaceAll(' ', '-'), file)
    }
    foreign = owned.use(await ApiDevice.start('foreign', [...packets, ...largePackets()]))
    process.env.SEEN_PASSWORD = (appliance.credentials('full') ?? '').split(':')[1] ?? ''
    process.env.FAKE_DEVICE_PASSWORD = foreign.password
    const own = { user: 'full', password: { env: 'SEEN_PASSWORD' } }
    const devices = [
      { name: 'new', url: appliance.url, ...own },
      { name: 'old', url: await startOld(appliance.url, owned), ...own },
      foreign.config,
    ]
    gateway = owned.use(
      await startTempGateway([], redis.url, { devices }, [
        { name: 'dns', role: 'user', filter: 'udp port 53' },
      ]),
    )
    await eventually(
      async () => {
        const answer = await httpGet(`${gateway.url}/v1/devices/foreign`, { headers: gateway.as.user })
        return answer.json().kind === 'api'
      },
      { message: 'the gateway knows that the device is a third-party device' },
    )
  })
  after(() => owned.disposeAsync())

  async function search(pairs: Readonly<Record<string, string>>, user = 'user'): Promise<readonly Line[]> {
    const query = new URLSearchParams({ ...RANGE, Address: HOSTS.join(), ...pairs }).toString()
    const answer = await httpGet(`${gateway.url}/v1/seen?${query}`, { headers: gateway.basic(user) })
    assert.equal(answer.status, 200, answer.body.toString())
    const lines = answer.body.toString().split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as Line)
  }

  const of = (lines: readonly Line[], device: string) =>
    lines
      .filter((line) => line.device === device && line.address !== undefined)
      .map(({ device: _, ...line }) => line)
  const failures = (lines: readonly Line[]) =>
    lines.flatMap(({ device, error }) =>
      error === undefined ? [] : [`${device} ${error.code}: ${error.detail}`],
    )

  test('with Verify they count like one that can', async () => {
    const lines = await search({ Verify: '1' })
    assert.deepEqual(failures(lines), [])
    const expected = of(lines, 'new')
    assert.ok(expected.length > 5)
    assert.ok(expected.every(({ spans }) => spans?.length === 0))
    assert.deepEqual(of(lines, 'old'), expected)
    assert.deepEqual(of(lines, 'foreign'), expected)
    assert.equal(lines.at(-1)?.complete, true)
    await foreign.until(() => foreign.running === 0)
    const udp = await search({ Verify: '1', FilterBPF: 'udp', Device: 'new,old' })
    assert.deepEqual(of(udp, 'old'), of(udp, 'new'))
    assert.notDeepEqual(of(udp, 'old'), expected)
  })

  test('also networks, files in microseconds, and streams that break off once', async () => {
    const asked = { Verify: '1', Device: 'new,foreign', Address: '10.0.0.0/29,10.0.0.3,2001:db8::/32' }
    foreign.behaviour = { isCoarse: true }
    foreign.breaksLeft = 1
    const lines = await search(asked)
    foreign.behaviour = {}
    assert.deepEqual(failures(lines), [])
    assert.deepEqual(of(lines, 'foreign'), of(lines, 'new'))
  })

  for (const [link, { day }] of Object.entries(OTHER_LINKS))
    test(`packets of captures of ${link}, also after VLAN tags of any type`, async () => {
      const { TSBegin, TSEnd } = rangeOfDay(day)
      const lines = await search({
        ...{ TSBegin, TSEnd, Verify: '1', Device: 'new,old' },
        Address: '10.0.0.1,10.0.0.2,10.0.1.0/24,10.9.9.9,2001:db8::/32',
      })
      assert.deepEqual(failures(lines), [])
      const expected = of(lines, 'new')
      assert.equal(expected.length, 4)
      assert.deepEqual(of(lines, 'old'), expected)
      assert.equal(lines.at(-1)?.complete, true)
    })

  test('what they did not get to is said', async () => {
    const { TSBegin, TSEnd } = rangeOfDay(LARGE.day)
    const asked = { TSBegin, TSEnd, Verify: '1', Device: 'old,foreign', Address: '10.0.0.1,10.0.0.9' }
    const lines = await search({ ...asked, VerifyBytesMax: '10000' })
    const end = lines.at(-1)
    assert.deepEqual([end?.complete, end?.partial, end?.unanswered], [false, ['foreign', 'old'], []])
    for (const device of ['old', 'foreign']) {
      const [first, second] = of(lines, device)
      assert.ok(Number(first?.packets) < LARGE.packets)
      assert.equal(second?.packets, '0', 'each address may be in the rest')
      for (const line of [first, second]) assert.deepEqual(line?.spans, [{ fromNs: TSBegin, toNs: TSEnd }])
    }
    await foreign.until(() => foreign.running === 0)
  })

  test('a limit below what was read anyway leaves out nothing', async () => {
    const [one] = of(await search({ Verify: '1', Device: 'new' }), 'new')
    const ofOne = { TSBegin: one?.firstNs ?? '', TSEnd: String(BigInt(one?.firstNs ?? '') + 1n) }
    const asked = { ...ofOne, Verify: '1', Address: one?.address ?? '', Device: 'old,foreign' }
    const lines = await search({ ...asked, VerifyBytesMax: '1' })
    assert.equal(lines.at(-1)?.complete, true)
    for (const device of ['old', 'foreign'])
      assert.deepEqual(
        of(lines, device).map(({ packets, spans }) => [packets, spans]),
        [['1', []]],
      )
  })

  test('what cannot be counted is refused, with what to do', async () => {
    const many = Array.from({ length: 33 }, (_, index) => `10.0.1.${index}`).join()
    for (const [pairs, why, user] of [
      [{}, /old .* an older version of capfleet: with Verify=1/],
      [{}, /foreign .* a third-party device: with Verify=1/],
      [{ Verify: '1', Address: many }, /at most 32 addresses/],
      [{ Verify: '1', FilterBPF: 'vlan 3' }, /leave it out/],
      [{ Verify: '1' }, /may only see packets that pass a filter/, 'dns'],
    ] as const) {
      const lines = await search({ Device: 'old,foreign', ...pairs }, user)
      const refused = failures(lines)
      assert.equal(refused.length, 2, JSON.stringify(lines))
      for (const text of refused) assert.match(text, /^(old|foreign) (seen-unsupported|device-protocol): /)
      assert.ok(
        refused.some((text) => why.test(text)),
        refused.join('\n'),
      )
      assert.deepEqual(lines.at(-1)?.unanswered, ['foreign', 'old'])
    }
  })

  test('a gateway that is a device is named as that, and its devices can be searched', async () => {
    const own = { user: 'full', password: { env: 'INNER_PASSWORD' } }
    process.env.INNER_PASSWORD = USER_PASSWORD
    await using redis = await TempRedis.create()
    const devices = [
      { name: 'inner', url: gateway.url, ...own },
      { name: 'inner-new', url: `${gateway.url}/devices/new`, ...own },
    ]
    await using outer = await startTempGateway([], redis.url, { devices })
    const ask = (path: string) => httpGet(outer.url + path, { headers: outer.as.user })
    await eventually(async () => (await ask('/v1/devices/inner')).json().kind === 'capfleet', {
      message: 'the gateway knows what kind of device the other one is',
    })
    const [{ address = '' } = {}] = of(await search({ Device: 'new' }), 'new')
    const query = new URLSearchParams({ ...RANGE, Address: address }).toString()
    const answer = await ask(`/v1/seen?${query}`)
    const lines = answer.body.toString().trim().split('\n')
    const found = lines.map((line) => JSON.parse(line) as Line)
    assert.match(
      failures(found).join(),
      /^inner seen-unsupported: .* because it is a gateway \(make its devices devices of this one/,
    )
    const expected = of(await search({ Address: address, Device: 'new' }), 'new')
    assert.equal(expected.length, 1)
    assert.deepEqual(of(found, 'inner-new'), expected)
  })

  test('a device that stays away is named', async () => {
    foreign.refusal = { status: 400, text: 'syntax error\n' }
    const lines = await search({ Verify: '1', Device: 'foreign' })
    const filtered = await search({ Verify: '1', Device: 'foreign', FilterBPF: 'udp' })
    foreign.refusal = undefined
    assert.match(
      failures(lines).join(),
      /^foreign seen-unsupported: .* packets of the addresses cannot be counted: device foreign rejected the download .*syntax error/,
    )
    assert.equal(lines.at(-1)?.complete, false)
    assert.match(failures(filtered).join(), /^foreign bad-parameter: device foreign rejected the download/)
  })
})
