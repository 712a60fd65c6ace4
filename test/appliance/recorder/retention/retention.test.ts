// The store as a ring: what is removed, what stays, and what is reported.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { HeldCapture } from '../../../../appliance/recorder/writer/held-capture.ts'
import { segmentsOf } from '../../../../appliance/store/stored-capture.ts'
import { putCapture } from '../../../support/disks/store-captures.ts'
import { StoreKeeper } from '../../../support/disks/store-keeper.ts'
import { eventually } from '../../../support/eventually.ts'
import { captureFacts, captureRecord } from '../../../support/packets/capture-records.ts'
import { makePacket, makePcap } from '../../../support/packets/packet-maker.ts'
import { readPcap } from '../../../support/packets/pcap-records.ts'
import { startTempAppliance } from '../../../support/processes/temp-appliance.ts'

const START_NS = 1_700_000_000_000_000_000n
const at = (i: number): bigint => START_NS + BigInt(i) * 1_000_000n
const SEGMENT_BYTES = 100_000
/** Nine packets are a segment. */
const PACKET_BYTES = 10_000

const appliance = await startTempAppliance()
await appliance.stopRecorder()
const { storePath } = appliance
after(() => appliance[Symbol.asyncDispose]())

const open = (settings: Parameters<typeof StoreKeeper.open>[0]['settings'], nowNs?: () => bigint) =>
  StoreKeeper.open({ storePath, settings, segmentBytes: SEGMENT_BYTES, ...(nowNs ? { nowNs } : {}) })

/** A capture with the packets [first, first + count). */
async function importCapture(keeper: StoreKeeper, name: string, first: number, count: number): Promise<void> {
  const file = join(appliance.folder, `${name}.pcap`)
  const packets = Array.from({ length: count }, (_, i) =>
    makePacket(at(first + i), `${first + i}`, PACKET_BYTES),
  )
  await writeFile(file, makePcap(packets))
  await keeper.writer.importCapture({ name, files: [file] })
}

const numbersOf = (body: Buffer): number[] =>
  readPcap(body).records.map(({ ns }) => Number((ns - START_NS) / 1_000_000n))
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)
const list = async () => (await appliance.get('/stream/list')).json().List as Record<string, unknown>[]
const timerange = (from: number, to: number) =>
  appliance.get(`/api/v1/pcap/timerange?TSBegin=${at(from)}&TSEnd=${at(to)}`)

beforeEach(async () => {
  await using keeper = await open({})
  for (const { Path } of await list()) await keeper.writer.deleteCapture(String(Path))
})

test('the oldest segments are removed, as few as necessary, and all clients are notified', async () => {
  {
    await using keeper = await open({})
    await importCapture(keeper, 'first', 0, 45)
    await importCapture(keeper, 'second', 45, 45)
  }
  await using keeper = await open({ maxBytes: 7 * SEGMENT_BYTES })
  assert.deepEqual(keeper.kinds(), Array(3).fill('segment-removed'))
  assert.deepEqual(
    keeper.events.map(({ fields }) => [fields.name, fields.segment, fields.packets]),
    [
      ['first', 1, '9'],
      ['first', 2, '9'],
      ['first', 3, '9'],
    ],
  )
  const items = await list()
  assert.deepEqual(
    items.map(({ Path, State, ValidPct, PacketCnt }) => [Path, State, ValidPct, PacketCnt]),
    [
      ['second', 'closed', 100, '45'],
      ['first', 'trimmed', 39, '18'],
    ],
  )
  const stats = (await appliance.get('/sysmaster/stats_summary')).json()
  assert.equal(stats.packets_oldest_ts, String(at(27)))
  const partly = await timerange(20, 50)
  assert.equal(partly.headers['capfleet-aged-out-before'], String(at(26) + 1n))
  assert.deepEqual(numbersOf(partly.body), range(27, 50))
  const gone = await timerange(0, 27)
  assert.deepEqual([gone.status, gone.json().code, gone.json().oldestNs], [410, 'aged-out', String(at(27))])
  const whole = await timerange(27, 90)
  assert.equal(whole.headers['capfleet-aged-out-before'], undefined)
  assert.deepEqual(numbersOf(whole.body), range(27, 90))
  const estimate = (await appliance.get('/api/v1/pcap/estimate?StreamName=first')).json()
  assert.equal(estimate.Packets, '18')
  const single = await appliance.get('/api/v1/pcap/single?StreamName=first')
  assert.deepEqual(numbersOf(single.body), range(27, 45))
  assert.equal(single.headers['capfleet-aged-out-before'], String(at(26) + 1n))
  assert.deepEqual(await readdir(join(storePath, 'captures', 'first', 'cap0', '00000')), [
    '00000004.idx',
    '00000004.pcap',
    '00000004.sieve',
    '00000004.tally',
    '00000005.idx',
    '00000005.pcap',
    '00000005.sieve',
    '00000005.tally',
  ])
})

test('a finished segment that has grown counts with its new size', async () => {
  await using keeper = await open({ maxBytes: 6 * SEGMENT_BYTES })
  await importCapture(keeper, 'first', 0, 45)
  await keeper.collect()
  assert.deepEqual(keeper.kinds(), [])
  const capture = keeper.writer.captures.get('first')
  assert.ok(capture)
  await keeper.writer.correctSegment(capture, { port: 0, number: 5 }, (now) => ({
    ...now,
    sideBytes: 2 * SEGMENT_BYTES,
  }))
  await keeper.collect()
  assert.deepEqual(new Set(keeper.kinds()), new Set(['segment-removed']))
})

test('a capture whose last segment goes is gone by name too, also after a restart', async () => {
  {
    await using keeper = await open({})
    await importCapture(keeper, 'early', 0, 9)
    await importCapture(keeper, 'late', 100, 9)
  }
  {
    await using keeper = await open({ maxBytes: SEGMENT_BYTES })
    assert.deepEqual(keeper.kinds(), ['segment-removed', 'capture-aged-out'])
  }
  const named = await appliance.get('/api/v1/pcap/single?StreamName=early')
  assert.deepEqual([named.status, named.json().code], [410, 'aged-out'])
  assert.equal((await timerange(0, 50)).status, 410)
  assert.equal((await timerange(0, 105)).headers['capfleet-aged-out-before'], String(at(8) + 1n))
  assert.equal((await appliance.get('/api/v1/pcap/single?StreamName=never')).status, 404)
  assert.deepEqual(
    (await list()).map(({ Path }) => Path),
    ['late'],
  )
})

test('what is too old goes, whatever room there is', async () => {
  await using first = await open({})
  await importCapture(first, 'aging', 0, 18)
  await first[Symbol.asyncDispose]()
  const hourAhead = () => BigInt(Date.now() + 3_600_000) * 1_000_000n
  {
    await using keeper = await open({ maxAgeMs: 7_200_000 }, hourAhead)
    assert.deepEqual(keeper.kinds(), [], 'its import was an hour ago, its packets are of 2023')
  }
  await using keeper = await open({ maxAgeMs: 1_800_000, onFull: 'stop' }, hourAhead)
  assert.deepEqual(keeper.kinds(), ['segment-removed', 'segment-removed', 'capture-aged-out'])
  assert.equal(keeper.events[0]?.fields.reason, 'age')
})

test('onFull "stop" keeps everything, reports it once and stores nothing new', async () => {
  await using first = await open({})
  await importCapture(first, 'kept', 0, 45)
  await first[Symbol.asyncDispose]()
  await using keeper = await open({ maxBytes: 2 * SEGMENT_BYTES, onFull: 'stop' })
  await assert.rejects(keeper.retention.giveRoom(10n, true), { code: 'store-full' })
  await keeper.collect()
  assert.deepEqual(keeper.kinds(), ['store-full'])
  assert.throws(() => keeper.retention.checkRoom(), { code: 'store-full' })
  assert.deepEqual(numbersOf((await timerange(0, 100)).body), range(0, 45))
})

test('an import that may remove nothing gets what is free, and gives way to a capture that needs it', async () => {
  await using keeper = await open({ maxBytes: 7 * SEGMENT_BYTES })
  await importCapture(keeper, 'old', 0, 18)
  const room = await keeper.retention.giveRoom(0n, false)
  const { maxBytes = 0n } = room
  assert.ok(maxBytes > 5n * BigInt(SEGMENT_BYTES) && maxBytes < 6n * BigInt(SEGMENT_BYTES), `${maxBytes}`)
  // As a capture that is being recorded does: it does not ask for space.
  await importCapture(keeper, 'recorded', 18, 54)
  await keeper.collect()
  assert.deepEqual(keeper.kinds(), [], 'what the import has written goes first')
  assert.equal(room.signal.aborted, true)
  assert.equal((room.signal.reason as { code: string }).code, 'store-full')
  room[Symbol.dispose]()
  await keeper.collect()
  assert.deepEqual(
    keeper.events.map(({ fields }) => fields.name),
    ['old'],
    'then the ring rolls as ever',
  )
})

test('of two imports that were given the same room, the one that is finished later does not get it', async () => {
  await using keeper = await open({ maxBytes: 4 * SEGMENT_BYTES })
  await importCapture(keeper, 'held', 0, 9)
  using first = await keeper.retention.giveRoom(0n, false)
  using second = await keeper.retention.giveRoom(0n, false)
  const files = [join(appliance.folder, 'two.pcap')]
  await writeFile(
    files[0] ?? '',
    makePcap(Array.from({ length: 18 }, (_, i) => makePacket(at(i), `${i}`, PACKET_BYTES))),
  )
  const ends = await Promise.allSettled([
    keeper.writer.importCapture({ name: 'a', files }, {}, first),
    keeper.writer.importCapture({ name: 'b', files }, {}, second),
  ])
  assert.deepEqual(ends.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const refused = ends.find((end) => end.status === 'rejected')
  assert.equal(refused?.reason.code, 'store-full')
  await keeper.collect()
  assert.deepEqual(keeper.kinds(), [])
  assert.equal((await readdir(join(storePath, 'captures'))).length, 2)
})

test('only an import that may evict gets more room than is free', async () => {
  await using first = await open({})
  await importCapture(first, 'held', 0, 45)
  await first[Symbol.asyncDispose]()
  await using keeper = await open({ maxBytes: 5 * SEGMENT_BYTES })
  using free = await keeper.retention.giveRoom(0n, false)
  await assert.rejects(free.hold((free.maxBytes ?? 0n) + 1n), { code: 'store-full' })
  assert.deepEqual(keeper.kinds(), [])
  using room = await keeper.retention.giveRoom(0n, true)
  using _held = await room.hold(BigInt(2 * SEGMENT_BYTES))
  assert.deepEqual(keeper.kinds(), ['segment-removed', 'segment-removed'])
})

test('the open segment of an active capture stays and the one before it, and its log brings nothing back', async () => {
  await using keeper = await open({})
  await importCapture(keeper, 'active', 0, 27)
  const [closed] = (await list()).map(({ Path }) => Path)
  assert.equal(closed, 'active')
  // As a recorder leaves it that has finished two segments and writes the third.
  const whole = await keeper.writer.captureOf('active')
  assert.ok(whole)
  await keeper[Symbol.asyncDispose]()
  const folder = join(storePath, 'captures', 'active')
  for (const name of ['capture.json', 'capture.copy.json', 'segments.log']) await rm(join(folder, name))
  const [first, second, third] = segmentsOf(whole)
  assert.ok(first && second && third)
  await HeldCapture.create(folder, captureFacts('active', { type: 'capture', state: 'active' }), [
    first,
    second,
  ])
  await using full = await open({ maxBytes: 1 })
  assert.deepEqual(full.kinds(), ['segment-removed', 'store-full'])
  const [item] = await list()
  assert.deepEqual([item?.State, item?.IsActive, item?.PacketCnt], ['active', true, '18'])
  assert.deepEqual(numbersOf((await timerange(0, 100)).body), range(9, 27))
  await full.writer.addSegments('active', [third])
  await full.writer.changeRecord('active', (record) => ({ ...record, state: 'closed' }))
  const [after] = await list()
  assert.deepEqual([after?.State, after?.PacketCnt], ['trimmed', '18'])
})

test('a segment that is read stays on the disk until its reader is gone, by kill -9 too', async () => {
  await using first = await open({})
  await importCapture(first, 'read', 0, 9)
  await importCapture(first, 'younger', 50, 9)
  await first[Symbol.asyncDispose]()
  using reader = await lockedByProcess(join(storePath, 'captures', 'read', 'cap0', '00000', '00000001.pcap'))
  await using keeper = await open({ maxBytes: SEGMENT_BYTES })
  assert.deepEqual(keeper.kinds(), ['segment-removed', 'segment-removed', 'capture-aged-out'])
  assert.equal(keeper.events[2]?.fields.name, 'younger', 'room is made at once, elsewhere')
  assert.ok((await readdir(join(storePath, 'captures', 'read', 'cap0', '00000'))).includes('00000001.pcap'))
  await keeper.collect()
  assert.equal(keeper.events.length, 3)
  reader[Symbol.dispose]()
  await eventually(
    async () => {
      await keeper.collect()
      return keeper.events.length > 3
    },
    { message: 'the kernel gives the lock back' },
  )
  assert.deepEqual(keeper.events[3]?.fields.name, 'read')
  assert.deepEqual(await readdir(join(storePath, 'captures')), [])
})

test('a segment that is only still read takes room until its files are gone', async () => {
  await using keeper = await open({ maxBytes: 2.5 * SEGMENT_BYTES })
  await importCapture(keeper, 'read', 0, 9)
  await importCapture(keeper, 'second', 10, 9)
  using reader = await lockedByProcess(join(storePath, 'captures', 'read', 'cap0', '00000', '00000001.pcap'))
  await importCapture(keeper, 'third', 20, 9)
  await keeper.collect()
  const removed = () =>
    keeper.events.flatMap(({ kind, fields }) => (kind === 'segment-removed' ? [fields.name] : []))
  assert.deepEqual(removed(), ['read', 'second'], 'the first one frees nothing yet')
  await importCapture(keeper, 'fourth', 30, 9)
  await keeper.collect()
  assert.deepEqual(removed(), ['read', 'second', 'third'], 'two are held, and one is on the disk beside them')
  const { maxBytes = 0n } = await keeper.retention.giveRoom(0n, false)
  assert.ok(maxBytes < BigInt(SEGMENT_BYTES), `${maxBytes} are free`)
  reader[Symbol.dispose]()
  await eventually(
    async () => {
      await keeper.collect()
      return (await keeper.retention.giveRoom(0n, false)).maxBytes !== maxBytes
    },
    { message: 'the kernel gives the lock back, and the room is there' },
  )
})

test('a reader that takes too long loses its segment', async () => {
  await using first = await open({})
  await importCapture(first, 'slow', 0, 9)
  await first[Symbol.asyncDispose]()
  const path = join(storePath, 'captures', 'slow', 'cap0', '00000', '00000001.pcap')
  using _reader = await lockedByProcess(path)
  await using keeper = await open({ maxBytes: 1, pinMs: 300 })
  assert.deepEqual(keeper.kinds().slice(0, 1), ['segment-removed'])
  const isGone = async (): Promise<boolean> => {
    await keeper.collect()
    return keeper.kinds().includes('capture-aged-out')
  }
  await eventually(isGone, { message: 'the patience ends' })
})

test('the end of a recorder does not wait until room is made', async () => {
  await using keeper = await open({})
  await importCapture(keeper, 'held', 0, 45)
  const making = keeper.retention.makeRoom(2n ** 60n)
  await keeper.retention[Symbol.asyncDispose]()
  await making
  assert.ok(!keeper.kinds().includes('segment-removed'))
  assert.deepEqual(numbersOf((await timerange(0, 45)).body), range(0, 45))
})

test('files that a killed recorder left are removed by the next one', async () => {
  await using keeper = await open({})
  await importCapture(keeper, 'crashed', 0, 27)
  const capture = keeper.writer.captures.get('crashed')
  const segment = capture?.table.portOf(0)?.oldest
  assert.ok(segment)
  // The log is written, and the recorder dies before the files are removed.
  await keeper.writer.dropSegments(capture, [segment])
  await keeper[Symbol.asyncDispose]()
  assert.deepEqual(numbersOf((await timerange(9, 100)).body), range(9, 27))
  await using next = await open({})
  assert.deepEqual(next.kinds(), [])
  const files = await readdir(join(storePath, 'captures', 'crashed', 'cap0', '00000'))
  assert.equal(
    files.some((file) => file.startsWith('00000001')),
    false,
  )
})

test('a log that names a lost file fails no range: the loss is counted, and the rest comes', async () => {
  await using keeper = await open({})
  await importCapture(keeper, 'there', 0, 9)
  await putCapture(storePath, captureRecord('ghost', { startNs: at(0), endNs: at(9) }))
  const answer = await timerange(0, 9)
  assert.equal(answer.status, 200)
  assert.deepEqual(numbersOf(answer.body), range(0, 9))
  assert.equal(answer.trailers['capfleet-corrupt-blocks'], '1')
})

/** Processes that hold the lock of a reader, until dispose kills them with SIGKILL. */
async function lockedByProcess(path: string): Promise<Disposable> {
  const reader = spawn('flock', ['--shared', path, '--command', 'echo locked; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  await once(reader.stdout, 'data')
  const { pid } = reader
  if (pid === undefined) throw new Error('flock has not been started')
  let isHeld = true
  return {
    [Symbol.dispose]() {
      if (isHeld) process.kill(-pid, 'SIGKILL')
      isHeld = false
    },
  }
}
