// The whole API through the gateway, over two real appliances.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { type HttpAnswer, httpGet } from '../../support/http-get.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { makePcapng } from '../../support/packets/pcapng-maker.ts'
import { randomVendorPacket, type VendorPacket } from '../../support/packets/vendor-packets.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const START_NS = 1_790_000_000_000_000_000n
const RANGE = `TSBegin=${START_NS}&TSEnd=${START_NS + 3_600_000_000_000n}&TSUnit=nanos`
const random = seededRandom()

describe(`the fleet (SEED=${random.seed})`, () => {
  const owner = new AsyncDisposableStack()
  const appliances: TempAppliance[] = []
  /** The packets of each device, in stored order. */
  const packets: VendorPacket[][] = []
  let gateway: TempGateway

  before(async () => {
    const redis = owner.use(await TempRedis.create())
    for (const name of ['east', 'west']) {
      const appliance = owner.use(await startTempAppliance())
      appliances.push(appliance)
      packets.push(await importTwo(appliance, name))
    }
    const [, password = ''] = (appliances[0]?.credentials('full') ?? '').split(':')
    process.env.TEST_APPLIANCE_PASSWORD = password
    const devices = appliances.map(({ url }, index) => ({
      name: ['east', 'west'][index],
      url,
      user: 'full',
      password: { env: 'TEST_APPLIANCE_PASSWORD' },
    }))
    gateway = owner.use(await startTempGateway([], redis.url, { devices }))
  })
  after(() => owner.disposeAsync())

  async function importTwo(appliance: TempAppliance, device: string): Promise<VendorPacket[]> {
    const all: VendorPacket[] = []
    let ns = START_NS + BigInt(random.integer(0, 1_000))
    for (const part of ['first', 'second']) {
      const records = Array.from({ length: 400 }, (_, index) => {
        ns += BigInt(random.integer(0, 2_000_000))
        return { ...randomVendorPacket(random, ns, `${device} ${part} ${index}`), port: index % 2 }
      })
      const path = join(appliance.folder, `${part}.pcapng`)
      await writeFile(path, makePcapng(2, records))
      await appliance.importFiles(`${device}-${part}`, path)
      // Within a capture the port decides between equal times.
      all.push(...records.toSorted((a, b) => Number(a.ns - b.ns) || a.port - b.port))
    }
    return all
  }

  const get = (path: string): Promise<HttpAnswer> =>
    httpGet(gateway.url + path, { headers: { ...gateway.as.user, te: 'trailers' } })

  async function download(
    path: string,
  ): Promise<{ body: Buffer; records: readonly PcapRecord[]; answer: HttpAnswer }> {
    const answer = await get(path)
    assert.equal(answer.status, 200, `${path}: ${answer.body.toString('utf8', 0, 400)}`)
    assert.equal(answer.trailers['capfleet-complete'], '1')
    return { body: answer.body, records: readPcap(answer.body).records, answer }
  }

  test('MaxPackets and MaxBytes of a merge leave the beginning of the whole', async () => {
    const whole = await download(`/api/v1/pcap/timerange?${RANGE}`)
    assert.equal(whole.records.length, packets.flat().length)
    assert.equal(whole.answer.trailers['capfleet-truncated'], '0')
    for (let round = 0; round < 20; round++) {
      const limit = random.pick([
        `MaxPackets=${random.integer(1, 1_700)}`,
        `MaxBytes=${random.integer(24, whole.body.length + 100)}`,
      ])
      const { body, records, answer } = await download(`/api/v1/pcap/timerange?${RANGE}&${limit}`)
      assert.ok(body.equals(whole.body.subarray(0, body.length)), limit)
      const next = whole.records[records.length]
      assert.equal(answer.trailers['capfleet-next-ns'], next?.ns.toString(), limit)
      assert.equal(answer.trailers['capfleet-truncated'], next === undefined ? '0' : '1', limit)
      assert.equal(answer.trailers['capfleet-packets'], String(records.length), limit)
      const allowed = Number(limit.split('=')[1])
      const [used, step] = limit.startsWith('MaxPackets')
        ? [records.length, 1]
        : [body.length, 16 + (next?.captured.length ?? 0)]
      assert.ok(used <= allowed && (next === undefined || used + step > allowed), limit)
    }
  })

  test('in a vendor’s time the devices are merged by that time', async () => {
    const { records, answer } = await download(`/api/v1/pcap/timerange?${RANGE}&TSMode=vendorA7130`)
    const expected = packets
      .map((list) => list.map((packet) => ({ ...packet, ns: packet.times.vendorA7130 ?? packet.ns })))
      .flatMap((list) => list.toSorted((a, b) => Number(a.ns - b.ns)))
      .toSorted((a, b) => Number(a.ns - b.ns))
    assert.deepEqual(recordLines(records), recordLines(expected))
    const fallbacks = packets.flat().filter(({ times }) => times.vendorA7130 === undefined).length
    assert.equal(answer.trailers['capfleet-ts-fallbacks'], String(fallbacks))
  })

  test('filters of every kind reach the devices', async () => {
    const count = async (more: string) =>
      (await download(`/api/v1/pcap/timerange?${RANGE}&${more}`)).records.length
    const matching = (accepts: (packet: VendorPacket) => boolean) => packets.flat().filter(accepts).length
    assert.equal(
      await count('FilterFrame=a7130.srcport%3D%3D1%2C2'),
      matching(({ a7130 }) => [1, 2].includes(a7130?.port ?? 0)),
    )
    assert.equal(await count('FilterRE=east'), packets[0]?.length)
    assert.equal(
      await count('FilterBPF=udp+port+53'),
      matching((p) => !p.isTagged && p.udpPort === 53),
    )
    assert.equal(
      await count('FilterBPF=udp+port+53&FilterBPFDecap=true'),
      matching((p) => p.udpPort === 53),
    )
  })

  test('legacy paths: units, and no more than two captures of a device', async () => {
    const seconds = await download('/pcap/timerange?TSBegin=1790000000&TSEnd=1790003600&TSMode=sec&')
    assert.equal(seconds.records.length, packets.flat().length)
    const [east] = appliances
    await east?.importFiles('east-third', join(east.folder, 'first.pcapng'))
    const refused = await get(`/devices/east/pcap/timerange?${RANGE}`)
    assert.deepEqual([refused.status, refused.json().param, refused.json().Status], [400, 'TSEnd', false])
    assert.match(String(refused.json().detail), /^TSEnd .* 3 captures \(.*east-third.*\)/)
    assert.equal((await get(`/pcap/timerange?${RANGE}`)).status, 400)
    assert.equal((await download(`/devices/east/api/v1/pcap/timerange?${RANGE}`)).records.length, 1_200)
    await east?.get('/pcap/del?StreamName=east-third')
  })

  test('the splits of a capture are found on its device, and their links lead there', async () => {
    const answer = await get('/stream/stime?StreamName=west-second&StreamView=split_1sec')
    const { Device, List } = answer.json() as { Device: string; List: { PCAP: string }[] }
    assert.equal(Device, 'west')
    const parts: string[] = []
    for (const { PCAP } of List) {
      assert.match(PCAP, /^\/devices\/west\/pcap\/splittime\?/)
      parts.push(...recordLines((await download(PCAP)).records))
    }
    assert.deepEqual(parts, recordLines((await download('/pcap/single?StreamName=west-second')).records))
    const below = await get('/devices/west/stream/ssize?StreamName=west-second&StreamView=split_10MB')
    assert.equal((below.json().List as unknown[]).length, 1)
    assert.equal((await get('/stream/ssize?StreamName=nosuch')).json().code, 'unknown-capture')
    assert.equal((await get('/stream/ssize')).json().param, 'StreamName')
  })

  test('a filter that does not compile is refused at once, though every stream is taken', async () => {
    const [east] = appliances
    using held = new DisposableStack()
    // These readers bypass the gateway; none of them reads.
    const big = join(east?.folder ?? '', 'big.pcap')
    await writeBigCapture(big)
    await east?.importFiles('big', big)
    for (let index = 0; index < 4; index++) {
      const opened = await east?.open('/api/v1/pcap/single?StreamName=big')
      if (opened) held.use(opened)
    }
    await eventually(async () => (await east?.slotsUsed()) === 4, { message: 'four readers' })
    for (const [filter, code] of [
      ['FilterBPF=tcp+prot', 'bad-bpf'],
      ['FilterRE=(', 'bad-regex'],
      ['FilterFrame=x', 'bad-frame-filter'],
    ] as const) {
      const startedMs = performance.now()
      const answer = await get(`/devices/east/api/v1/pcap/single?StreamName=big&${filter}&Wait=55`)
      assert.deepEqual([answer.status, answer.json().code], [400, code])
      // Not only when the wait ends.
      assert.ok(performance.now() - startedMs < 50_000)
    }
  })

  test('an estimate is passed through and takes no stream', async () => {
    const body = (await get('/devices/west/api/v1/pcap/estimate?StreamName=west-first')).json()
    assert.deepEqual([body.Packets, body.Exact], ['400', true])
    const viewer = await httpGet(`${gateway.url}/devices/west/api/v1/pcap/estimate?StreamName=west-first`, {
      headers: gateway.as.viewer,
    })
    assert.equal(viewer.status, 403)
  })
})
