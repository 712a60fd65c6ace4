// Downloads, lists and counts of a capture while it is being recorded.
import assert from 'node:assert/strict'
import { cp, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { GrowingSegments } from '../../../appliance/store/growing-segments.ts'
import { SegmentTable } from '../../../appliance/store/segment-table.ts'
import { portsOf, segmentsOf, storedCapture } from '../../../appliance/store/stored-capture.ts'
import { LogEntryKind } from '../../../native/segment-entry.ts'
import { ScriptedDriver } from '../../support/live/scripted-driver.ts'
import { captureFacts, captureRecord, entriesOfStreams } from '../../support/packets/capture-records.ts'
import { makePacket } from '../../support/packets/packet-maker.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { startTempAppliance } from '../../support/processes/temp-appliance.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const START_NS = 1_700_000_000_000_000_000n
const at = (i: number): bigint => START_NS + BigInt(i) * 1_000_000n
/** Large: four are a block. */
const packets = (count: number, first = 0) =>
  Array.from({ length: count }, (_, i) => makePacket(at(first + i), `packet ${first + i}`, 60_000))

const driver = await ScriptedDriver.make([packets(40), packets(10, 5)], 700_000)
const appliance = await startTempAppliance({ driver })
await appliance.recorder.startCapture('live')
after(async () => {
  await appliance[Symbol.asyncDispose]()
  await driver[Symbol.asyncDispose]()
})

const timerange = (from: number, to: number) =>
  appliance.get(`/api/v1/pcap/timerange?TSBegin=${at(from)}&TSEnd=${at(to)}`)
const numbersOf = (body: Buffer): number[] =>
  readPcap(body).records.map(({ ns }) => Number((ns - START_NS) / 1_000_000n))
/** The packets of both ports in the range. */
const expected = (from: number, to: number): number[] =>
  [...packets(40), ...packets(10, 5)]
    .map(({ ns }) => Number((ns - START_NS) / 1_000_000n))
    .filter((number) => number >= from && number < to)
    .toSorted((a, b) => a - b)

test('a download holds everything that capture_status said to be flushed before it', async () => {
  for (const ms of [1, 3, 8, 9, 17, 23, 30]) {
    await driver.flushUntil(at(ms))
    const status = (await appliance.get('/sysmaster/capture_status')).json()
    const flushed = Number((BigInt(String(status.FlushedTS)) - START_NS) / 1_000_000n)
    assert.equal(flushed, ms)
    const { status: code, body, trailers } = await timerange(0, flushed)
    assert.equal(code, 200)
    assert.deepEqual(numbersOf(body), expected(0, flushed))
    assert.equal(trailers['capfleet-corrupt-blocks'], '0')
  }
})

test('list, estimate and splits count what is flushed of an active capture', async () => {
  const { List } = (await appliance.get('/stream/list')).json() as { List: Record<string, unknown>[] }
  const [item] = List
  const { body } = await appliance.get('/api/v1/pcap/single?StreamName=live')
  const count = readPcap(body).records.length
  assert.ok(count >= expected(0, 30).length)
  assert.equal(item?.PacketCnt, String(count))
  assert.deepEqual([item?.IsActive, item?.State, item?.ValidPct], [true, 'active', 100])
  const last = numbersOf(body).at(-1) ?? 0
  assert.ok(BigInt(String(item?.EndTS)) > at(last))
  const estimate = (await appliance.get('/api/v1/pcap/estimate?StreamName=live')).json()
  assert.deepEqual([estimate.Packets, estimate.Bytes], [String(count), String(body.length)])
  const splits = (await appliance.get('/stream/stime?StreamName=live&StreamView=split_1sec')).json() as {
    List: { PacketCnt: string }[]
  }
  assert.equal(
    splits.List.reduce((sum, { PacketCnt }) => sum + Number(PacketCnt), 0),
    count,
  )
})

test('a torn entry at the end of an open index is normal', async () => {
  await driver.flushUntil(at(31))
  const folder = join(
    appliance.storePath,
    'captures',
    String((await appliance.recorder.captureReport()).name),
  )
  const before = numbersOf((await timerange(0, 100)).body)
  await using index = await open(join(folder, 'cap0', '00000', '00000003.idx'), 'r+')
  const { size } = await index.stat()
  await index.write(Buffer.alloc(40, 7), 0, 40, size)
  const { status, body, trailers } = await timerange(0, 100)
  assert.equal(status, 200)
  assert.deepEqual([numbersOf(body), trailers['capfleet-corrupt-blocks']], [before, '0'])
  await index.truncate(size)
})

test('the closed capture holds the same', async () => {
  await driver.flushUntil(at(100))
  const active = await appliance.get('/api/v1/pcap/single?StreamName=live')
  await appliance.recorder.stopCapture(false)
  const closed = await appliance.get('/api/v1/pcap/single?StreamName=live')
  assert.ok(active.body.equals(closed.body))
  assert.deepEqual(numbersOf(closed.body), expected(0, 100))
})

test('its start and end cover every packet, also one at the very end that its record has', () => {
  const segments = [{ number: 1, minNs: 4n, maxNs: 9n, packets: 2n, bytes: 64n }]
  const streams = [{ port: 0, linkType: 1, snaplen: 262_144, segments }]
  const spanOf = (startNs: bigint, endNs: bigint) => {
    const measured = captureRecord('a', { state: 'active', startNs, endNs, streams })
    return [measured.startNs, measured.endNs]
  }
  assert.deepEqual(spanOf(5n, 9n), [4n, 10n])
  assert.deepEqual(spanOf(4n, 10n), [4n, 10n])
  assert.deepEqual(spanOf(3n, 11n), [3n, 11n])
})

test('segments after the finished ones are open, removed numbers and other files are not', async () => {
  await using folder = await tempFolder()
  const table = new SegmentTable()
  const [second] = entriesOfStreams([
    {
      port: 0,
      linkType: 1,
      snaplen: 262_144,
      segments: [{ number: 2, minNs: 5n, maxNs: 6n, packets: 1n, bytes: 40n }],
    },
  ])
  assert.ok(second)
  table.apply(second)
  table.apply({ ...second, kind: LogEntryKind.removed, port: 1 })
  const [name] = (await appliance.get('/stream/list')).json().List as { Path: string }[]
  const stored = join(appliance.storePath, 'captures', String(name?.Path), 'cap0', '00000')
  for (const [port, group] of [
    [0, '00000'],
    [1, ''],
  ] as const) {
    const into = join(folder.path, `cap${port}`, group)
    await mkdir(into, { recursive: true })
    for (const number of [1, 2, 3]) {
      for (const ending of ['pcap', 'idx', 'tally']) {
        await cp(join(stored, `00000001.${ending}`), join(into, `0000000${number}.${ending}`))
      }
    }
  }
  await mkdir(join(folder.path, 'cap999x'))
  const growing = await new GrowingSegments().measure({ table, folder: folder.path, startNs: 1n })
  const capture = storedCapture(captureFacts('a', { state: 'active' }), table, { growing })
  assert.deepEqual(portsOf(capture), [0, 1])
  assert.deepEqual(
    [...segmentsOf(capture)].map(({ port, number }) => [port, number]),
    [
      [0, 2],
      [0, 3],
      [1, 3],
    ],
  )
  // The recorder finishes a segment between two reads: it counts once.
  const third = growing.find(({ port }) => port === 0)
  assert.ok(third)
  table.apply({ ...third, flags: 0 })
  assert.deepEqual(
    [...segmentsOf(capture)].map(({ port, number }) => [port, number]),
    [
      [0, 2],
      [0, 3],
      [1, 3],
    ],
  )
})

test('segments after any number of missing ones are found when the log was cut', async () => {
  await using folder = await tempFolder()
  const [name] = (await appliance.get('/stream/list')).json().List as { Path: string }[]
  const stored = join(appliance.storePath, 'captures', String(name?.Path), 'cap0', '00000')
  for (const number of ['00000007', '00001998']) {
    const into = join(folder.path, 'cap0', number === '00000007' ? '00000' : '00001')
    await mkdir(into, { recursive: true })
    for (const ending of ['pcap', 'idx', 'tally'])
      await cp(join(stored, `00000001.${ending}`), join(into, `${number}.${ending}`))
  }
  const capture = { table: new SegmentTable(), folder: folder.path, startNs: 1n }
  const segments = new GrowingSegments()
  for (let read = 0; read < 2; read++) {
    const growing = await segments.measure(capture)
    assert.deepEqual(
      growing.map(({ number }) => number),
      [7, 1998],
    )
  }
})
