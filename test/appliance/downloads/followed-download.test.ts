// Follow=1: a range that ends in the future is streamed as packets are flushed.
import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { eventually } from '../../support/eventually.ts'
import { ScriptedDriver } from '../../support/live/scripted-driver.ts'
import { makePacket } from '../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap } from '../../support/packets/pcap-records.ts'
import { readPcapng } from '../../support/packets/pcapng-reader.ts'
import { pause } from '../../support/pause.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const START_NS = 1_700_000_000_000_000_000n
const at = (i: number): bigint => START_NS + BigInt(i) * 1_000_000n
const packets = (count: number, first = 0): PcapRecord[] =>
  Array.from({ length: count }, (_, i) => makePacket(at(first + i), `packet ${first + i}`, 60_000))
const numbersOf = (body: Buffer): number[] =>
  readPcap(body).records.map(({ ns }) => Number((ns - START_NS) / 1_000_000n))
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

const cleanup = new AsyncDisposableStack()
after(() => cleanup.disposeAsync())

interface LiveAppliance {
  readonly appliance: TempAppliance
  readonly driver: ScriptedDriver
}

async function startLive(
  ports: readonly (readonly PcapRecord[])[],
  { segmentBytes = 700_000, idleTimeoutMs = 600_000, more = {} } = {},
): Promise<LiveAppliance> {
  const driver = cleanup.use(await ScriptedDriver.make(ports, segmentBytes))
  const config = { downloads: { idleTimeoutMs }, ...more }
  const appliance = cleanup.use(await startTempAppliance({ driver, config }))
  await appliance.recorder.startCapture('live')
  return { appliance, driver }
}

interface Followed {
  readonly status: number
  readonly body: Buffer
  readonly trailers: NodeJS.Dict<string>
}

/** The complete answer; resolves to a function that waits for it, once the head has arrived. */
async function follow({ appliance }: LiveAppliance, path: string): Promise<() => Promise<Followed>> {
  const { response } = await appliance.open(path)
  const body = buffer(response)
  body.catch(() => undefined)
  return async () => ({ status: response.statusCode ?? 0, body: await body, trailers: response.trailers })
}

const timerange = (from: number, to: number, more = ''): string =>
  `/api/v1/pcap/timerange?TSBegin=${at(from)}&TSEnd=${at(to)}&Follow=1${more}`

test('packets come as they are flushed, and the answer ends when its range is over', async () => {
  const live = await startLive([packets(60), packets(20, 30)])
  await live.driver.flushUntil(at(7))
  const { response } = await live.appliance.open(timerange(5, 50))
  const pieces: Buffer[] = []
  response.on('data', (piece: Buffer) => pieces.push(piece))
  const seen = (): number => pieces.reduce((sum, piece) => sum + piece.length, 0)
  const limit = { message: 'what is flushed is sent' }
  await eventually(() => seen() >= 24 + 2 * 60_016, limit)
  assert.equal(await live.appliance.slotsUsed(), 1)
  await live.driver.flushUntil(at(31))
  await eventually(() => seen() >= 24 + 26 * 60_016, limit)
  const ended = new Promise((resolve) => response.once('end', resolve))
  await live.driver.flushUntil(at(60))
  await ended
  const body = Buffer.concat(pieces)
  const both = [...range(5, 50), ...range(30, 50)].toSorted((a, b) => a - b)
  assert.deepEqual(numbersOf(body), both)
  assert.equal(response.trailers['capfleet-packets'], String(both.length))
  assert.equal(response.trailers['capfleet-bytes'], String(body.length))
  assert.equal(response.trailers['capfleet-complete'], '1')
  const later = await live.appliance.get(timerange(5, 50).replace('&Follow=1', ''))
  assert.ok(later.body.equals(body), 'byte for byte what a later download gives')
  await eventually(async () => (await live.appliance.slotsUsed()) === 0, limit)
})

test('pcapng describes a port when it appears, and is what a later download gives', async () => {
  const live = await startLive([packets(60), packets(20, 30)])
  await live.driver.flushUntil(at(7))
  const { response } = await live.appliance.open(timerange(5, 50, '&Format=pcapng'))
  const pieces: Buffer[] = []
  response.on('data', (piece: Buffer) => pieces.push(piece))
  const seen = (): number => pieces.reduce((sum, piece) => sum + piece.length, 0)
  const limit = { message: 'what is flushed is sent' }
  await eventually(() => seen() >= 2 * 60_000, limit)
  await live.driver.flushUntil(at(31))
  await eventually(() => seen() >= 26 * 60_000, limit)
  const ended = new Promise((resolve) => response.once('end', resolve))
  await live.driver.flushUntil(at(60))
  await ended
  const body = Buffer.concat(pieces)
  const { interfaces, packets: got, delivered, lastComment } = readPcapng(body)
  assert.deepEqual(
    interfaces.map(({ name }) => name),
    ['appliance:cap0', 'appliance:cap1'],
  )
  const both = [...range(5, 50), ...range(30, 50)].toSorted((a, b) => a - b)
  assert.deepEqual(
    got.map(({ ns }) => Number((ns - START_NS) / 1_000_000n)),
    both,
  )
  assert.deepEqual(
    got.map(({ port }) => port),
    both.map((ms, index) => (ms >= 30 && both[index - 1] === ms ? 1 : 0)),
  )
  assert.deepEqual(delivered, [45n, 20n])
  assert.equal(lastComment, `capfleet end: ${both.length} packets, complete`)
  assert.equal(response.trailers['capfleet-bytes'], String(body.length))
  const later = await live.appliance.get(timerange(5, 50, '&Format=pcapng').replace('&Follow=1', ''))
  assert.ok(later.body.equals(body), 'byte for byte what a later download gives')
})

test('MaxBytes holds for pcapng, also with the interface of a port that appears after it was filled', async () => {
  const packetBytes = 60_032
  // The comment with the query is longer than that of the refused one.
  for (const room of [8, 100, 20 * packetBytes]) {
    const live = await startLive([packets(10), packets(40, 12)])
    await live.driver.flushUntil(at(11))
    const refused = await live.appliance.get(timerange(0, 50, '&Format=pcapng&MaxBytes=24'))
    const least = Number(/ at least (\d+) /.exec(refused.json().detail as string)?.[1])
    const most = least + 10 * packetBytes + room
    const { response } = await live.appliance.open(timerange(0, 50, `&Format=pcapng&MaxBytes=${most}`))
    const pieces: Buffer[] = []
    response.on('data', (piece: Buffer) => pieces.push(piece))
    const ended = new Promise((resolve) => response.once('end', resolve))
    const seen = (): number => pieces.reduce((sum, piece) => sum + piece.length, 0)
    await eventually(() => seen() >= 10 * packetBytes, { message: 'what is flushed is sent' })
    await live.driver.flushUntil(at(60))
    await ended
    const body = Buffer.concat(pieces)
    const { packets: got, interfaces, lastComment } = readPcapng(body)
    assert.ok(body.length <= most && body.length > most - packetBytes - 500, `${body.length} of ${most}`)
    assert.equal(response.trailers['capfleet-truncated'], '1')
    const isFilled = room < packetBytes
    assert.deepEqual([got.length, interfaces.length], isFilled ? [10, 1] : [29, 2])
    assert.match(lastComment ?? '', /ended by MaxPackets or MaxBytes; the next packet is from/)
  }
})

test('under a forced filter a port is described before it has recorded anything', async () => {
  const capture = { ports: [0, 1, 2].map((port) => ({ port, interface: `eth${port}`, snaplen: 100 })) }
  const live = await startLive([packets(10), packets(10, 20)], { more: { capture } })
  const stored = timerange(0, 50, '&Format=pcapng').replace('&Follow=1', '')
  const namesFor = async (path: string) => {
    const { body } = await live.appliance.get(path, { headers: { 'capfleet-forced-filter': 'true' } })
    return readPcapng(body).interfaces
  }
  const early = await namesFor(stored)
  const named = (...ports: number[]) => ports.map((port) => `appliance:cap${port}`)
  assert.deepEqual(
    early.map(({ name }) => name),
    named(0, 1, 2),
  )
  await live.driver.flushUntil(at(5))
  assert.deepEqual(await namesFor(stored), early)
  await live.driver.flushUntil(at(60))
  assert.deepEqual(await namesFor(stored), early)
  const single = '/api/v1/pcap/single?StreamName=live&Format=pcapng'
  assert.deepEqual(await namesFor(single), early)
  const ofPort = (await namesFor(`${single}&FilterPort=1`)).map(({ name }) => name)
  assert.deepEqual(ofPort, named(1))
  const own = readPcapng((await live.appliance.get(stored)).body).interfaces.map(({ name }) => name)
  assert.deepEqual(own, named(0, 1), 'others see the ports that have packets')
})

test('filters, limits and compression work over the whole answer', async () => {
  const queries = {
    slice: '&Slice=100',
    packets: '&MaxPackets=30',
    bytes: `&MaxBytes=${24 + 30 * 60_016 + 5}`,
    span: `&TSMax=${25n * 1_000_000n}`,
    none: `&FilterBPF=${encodeURIComponent('tcp port 1')}`,
    gzip: '&Compression=fast',
    zstd: '&Compression=zstd&TSResolution=usec',
  }
  const ends: Record<string, () => Promise<Followed>> = {}
  const names = Object.keys(queries) as (keyof typeof queries)[]
  // A device serves three followed downloads.
  for (const group of [names.slice(0, 3), names.slice(3, 6), names.slice(6)]) {
    const live = await startLive([packets(200)], { segmentBytes: 300_000 })
    for (const name of group) ends[name] = await follow(live, timerange(0, 100, queries[name]))
    for (const ms of [3, 29, 30, 31, 60, 110]) {
      await live.driver.flushUntil(at(ms))
      const asked = live.driver.timesAsked
      await eventually(() => live.driver.timesAsked >= asked + 2, { message: 'the flush is seen' })
    }
    for (const name of group) {
      const plain = await live.appliance.get(timerange(0, 100, queries[name]).replace('&Follow=1', ''))
      const { body, trailers } = await (ends[name] as () => Promise<Followed>)()
      const unpack =
        name === 'gzip' ? gunzipSync : name === 'zstd' ? zstdDecompressSync : (bytes: Buffer) => bytes
      assert.ok(unpack(body).equals(unpack(plain.body)), name)
      for (const key of ['packets', 'truncated', 'next-ns', 'complete']) {
        assert.equal(trailers[`capfleet-${key}`], plain.trailers[`capfleet-${key}`], `${name} ${key}`)
      }
      assert.equal(trailers['capfleet-bytes'], String(body.length), name)
    }
  }
})

test('without a running capture the answer ends at once with what is stored', async () => {
  const live = await startLive([packets(8)])
  await live.driver.flushUntil(at(8))
  await live.appliance.recorder.stopCapture(false)
  const end = await follow(live, timerange(2, 100))
  assert.deepEqual(numbersOf((await end()).body), range(2, 8))
  const head = await live.appliance.get(timerange(2, 100), { method: 'HEAD' })
  assert.equal(head.status, 200)
})

test('a capture that stops ends what follows it, with everything that it held', async () => {
  const live = await startLive([packets(12)])
  await live.driver.flushUntil(at(4))
  const single = await follow(live, '/api/v1/pcap/single?StreamName=live&Follow=1')
  const split = await follow(
    live,
    `/api/v1/pcap/splittime?StreamName=live&Start=${at(2)}&Stop=${at(90)}&Follow=1`,
  )
  await live.driver.flushUntil(at(9))
  await live.driver.writeNext(0)
  await live.appliance.recorder.stopCapture(false)
  assert.deepEqual(numbersOf((await single()).body), range(0, 12))
  assert.deepEqual(numbersOf((await split()).body), range(2, 12))
})

test('a quiet follow outlives the idle time-out, and its slot is free when the client leaves', async () => {
  const idleTimeoutMs = 300
  const live = await startLive([packets(4)], { idleTimeoutMs })
  const opened = await live.appliance.open(timerange(0, 50))
  opened.response.resume()
  await pause(3 * idleTimeoutMs, 'the time-out passes')
  assert.equal(await live.appliance.slotsUsed(), 1)
  opened[Symbol.dispose]()
  await eventually(async () => (await live.appliance.slotsUsed()) === 0, { message: 'the slot is free' })
})

test('packets after the watermark, as after a clock step, end a follow visibly', async () => {
  const live = await startLive([packets(40), packets(4, 5)])
  const { response } = await live.appliance.open(timerange(0, 100))
  let bytes = 0
  response.on('data', (piece: Buffer) => {
    bytes += piece.length
  })
  const cut = new Promise((resolve) => response.once('error', resolve))
  await live.driver.flushUntil(at(30), [0])
  const limit = { message: 'what is flushed is sent' }
  await eventually(() => bytes >= 24 + 30 * 60_016, limit)
  await live.driver.writeNext(1)
  await live.driver.flushUntil(at(100))
  assert.match(String(await cut), /aborted/)
  const whole = await live.appliance.get(timerange(0, 100))
  assert.deepEqual(
    numbersOf(whole.body),
    [...range(0, 40), ...range(5, 9)].toSorted((a, b) => a - b),
  )
})

test('a vendor time cannot be followed, nor a legacy path', async () => {
  const live = await startLive([packets(1)])
  const vendor = await live.appliance.get(timerange(0, 9, '&TSMode=vendorB3550'))
  assert.deepEqual([vendor.status, vendor.json().param], [400, 'Follow'])
  const legacy = await live.appliance.get('/pcap/single?StreamName=live&Follow=1')
  assert.deepEqual([legacy.status, legacy.json().param], [400, 'Follow'])
})
