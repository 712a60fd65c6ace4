// /api/v1/activity of a real appliance, with tcpdump as the oracle for the contents of each part of a range.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ACTIVITY } from '../../../src/shared/contract/activity-answers.ts'
import { ScriptedDriver } from '../../support/live/scripted-driver.ts'
import { capturesNamed } from '../../support/packets/capture-files.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const START_NS = 1_790_000_000_123_456_789n
const MS = 1_000_000n
const S = 1_000_000_000n

interface Span {
  readonly fromNs: string
  readonly toNs: string
}

interface Activity {
  readonly fromNs: string
  readonly bucketNs: string
  readonly packets: readonly number[]
  readonly bytes: readonly number[]
  readonly exact: boolean
  readonly gaps: readonly Span[]
  readonly dropped: readonly Span[]
  readonly trimmed: readonly Span[]
  readonly damaged: readonly Span[]
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0)
const pairs = (spans: readonly Span[]) => spans.map(({ fromNs, toNs }) => [BigInt(fromNs), BigInt(toNs)])

async function activity(appliance: TempAppliance, query: string): Promise<Activity> {
  const answer = await appliance.get(`/api/v1/activity?${query}`)
  assert.equal(answer.status, 200, answer.body.toString())
  const told = answer.json()
  ACTIVITY.parse(told)
  return told as unknown as Activity
}

/** The times of all packets of a file, according to tcpdump. */
function timesIn(path: string): readonly bigint[] {
  const args = ['-r', path, '-tt', '-n', '-q', '--time-stamp-precision=nano']
  const lines = execFileSync('tcpdump', args, {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return [...lines.matchAll(/^(\d+)\.(\d{9}) /gm)].map(([, s, ns]) => BigInt(`${s}${ns}`))
}

/** How many of the times are in each reported part of the range. */
function counted(times: readonly bigint[], { fromNs, bucketNs, packets }: Activity): readonly number[] {
  const counts = packets.map(() => 0)
  for (const ns of times) {
    const index = Number((ns - BigInt(fromNs)) / BigInt(bucketNs))
    if (ns >= BigInt(fromNs) && index < counts.length) counts[index] = (counts[index] ?? 0) + 1
  }
  return counts
}

/** The largest number of packets by which the reported sum up to any edge differs from the true one. */
function farthest(told: readonly number[], truth: readonly number[]): number {
  let [difference, most] = [0, 0]
  for (const [index, count] of told.entries()) {
    difference += count - (truth[index] ?? 0)
    most = Math.max(most, Math.abs(difference))
  }
  return most
}

describe('the activity of imported captures', () => {
  const random = seededRandom()
  let appliance: TempAppliance
  let file = ''
  let times: readonly bigint[] = []
  let first = 0n
  before(async () => {
    appliance = await startTempAppliance({ segmentBytes: 1 << 16 })
    let ns = START_NS
    const packets = Array.from({ length: 3_000 }, (_, index) => {
      ns +=
        random.integer(0, 9) === 0 ? BigInt(random.integer(1, 40)) * S : BigInt(random.integer(0, 900_000))
      return makePacket(ns, `${index}`, random.integer(500, 9_000))
    })
    file = join(appliance.folder, 'a.pcap')
    await writeFile(file, makePcap(packets))
    await appliance.importFiles('a', file)
    times = timesIn(file)
    assert.equal(times.length, 3_000)
    first = times[0] ?? 0n
  })
  after(() => appliance[Symbol.asyncDispose]())

  const range = (beginNs: bigint, endNs: bigint, buckets: number) =>
    `TSBegin=${beginNs}&TSEnd=${endNs}&TSUnit=nanos&Buckets=${buckets}`

  test('of a few segments is exact where edges are whole milliseconds', async () => {
    const from = first - (first % MS)
    for (const [length, buckets] of [
      [300n * S, 300],
      [120n * S, 7],
      [10n * S, 2_000],
      [1_000n * MS, 1_000],
    ] as const) {
      const told = await activity(appliance, range(from, from + length, buckets))
      const truth = counted(times, told)
      assert.deepEqual(told.packets, truth, `${length}`)
      assert.ok(sum(truth) > 0 && told.exact)
    }
  })

  test('elsewhere each packet is in its part or one beside it', async () => {
    const from = START_NS + 7n
    const told = await activity(appliance, range(from, from + 10n * S + 1n, 997))
    assert.ok(farthest(told.packets, counted(times, told)) <= 20)
  })

  test('for many segments is answered from cached totals, and its sum is exact', async () => {
    const last = times.at(-1) ?? 0n
    const query = range(first, last + 1n, 1_999)
    const told = await activity(appliance, query)
    assert.equal(sum(told.packets), 3_000)
    assert.equal(told.exact, false)
    // A segment has at most 64 KiB, so a part with an edge inside it has few packets.
    assert.ok(farthest(told.packets, counted(times, told)) <= 16)
    assert.deepEqual(await activity(appliance, query), told)
    const { body } = await appliance.get('/api/v1/pcap/single?StreamName=a')
    assert.equal(sum(told.bytes), body.length - 24)
  })

  test('of a year with a day in it', async () => {
    const told = await activity(
      appliance,
      range(START_NS - 200n * 86_400n * S, START_NS + 165n * 86_400n * S, 365),
    )
    assert.deepEqual(told.packets, counted(times, told))
  })

  test('reports where nothing was recorded', async () => {
    const told = await activity(appliance, range(START_NS - 10n * S, (times.at(-1) ?? 0n) + 10n * S, 100))
    const end = (times.at(-1) ?? 0n) + 1n
    assert.deepEqual(pairs(told.gaps), [
      [START_NS - 10n * S, first],
      [end, end + 10n * S - 1n],
    ])
    assert.deepEqual([told.dropped, told.trimmed], [[], []])
  })

  for (const [query, param] of [
    ['TSBegin=2&TSEnd=2', 'TSEnd'],
    ['TSBegin=2&TSEnd=1', 'TSBegin'],
    ['TSEnd=1', 'TSBegin'],
    ['TSBegin=1&TSEnd=2&Buckets=0', 'Buckets'],
    ['TSBegin=1&TSEnd=2&Buckets=2001', 'Buckets'],
    ['TSBegin=1&TSEnd=2&Start=1&Strict=1', 'Start'],
  ] as const) {
    test(`?${query} is refused`, async () => {
      const answer = await appliance.get(`/api/v1/activity?${query}`)
      assert.deepEqual([answer.status, answer.json().param], [400, param])
    })
  }

  test('is for viewers too, and requires a password', async () => {
    const path = '/api/v1/activity?TSBegin=-1h&TSEnd=now'
    assert.equal((await appliance.get(path, { user: appliance.credentials('viewer') })).status, 200)
    assert.equal((await appliance.get(path, { user: 'nobody:x' })).status, 401)
  })
})

describe('the activity of what changes', () => {
  const at = (index: number) => 1_700_000_000_000_000_000n + BigInt(index) * MS
  const packets = (count: number) =>
    Array.from({ length: count }, (_, index) => makePacket(at(index), `${index}`, 60_000))

  test('a capture that grows is counted as far as it is flushed', async () => {
    await using driver = await ScriptedDriver.make([packets(40)], 700_000)
    await using appliance = await startTempAppliance({ driver })
    await appliance.recorder.startCapture('live')
    const query = `TSBegin=${at(0)}&TSEnd=${at(40)}&Buckets=10`
    assert.equal(sum((await activity(appliance, query)).packets), 0)
    await driver.flushUntil(at(8))
    assert.equal(sum((await activity(appliance, query)).packets), 8)
    await driver.flushUntil(at(40))
    const told = await activity(appliance, query)
    assert.deepEqual(told.packets, new Array(10).fill(4))
    await appliance.recorder.stopCapture(false)
    assert.deepEqual((await activity(appliance, query)).packets, told.packets)
  })

  test('data removed to make room is distinguished from data never recorded', async () => {
    const retention = {
      maxBytes: 700_000,
      minFreeBytes: 0,
      maxAgeMs: 0,
      onFull: 'roll',
      pinMs: 30_000,
    } as const
    await using appliance = await startTempAppliance({ segmentBytes: 130_000, retention })
    for (const [name, first] of [
      ['old', 0],
      ['new', 20],
    ] as const) {
      const path = join(appliance.folder, `${name}.pcap`)
      await writeFile(path, makePcap(packets(30).slice(first, first + 10)))
      await appliance.recorder.importCapture({ name, files: [path], mayEvict: true })
    }
    const told = await activity(appliance, `TSBegin=${at(0)}&TSEnd=${at(40)}&Buckets=40`)
    assert.equal(sum(told.packets.slice(20)), 10)
    const [[from = 0n, to = 0n] = []] = pairs(told.trimmed)
    assert.equal(from, at(0))
    assert.ok(to > at(1) && to <= at(9) + 1n)
    assert.deepEqual(pairs(told.gaps), [
      [at(9) + 1n, at(20)],
      [at(29) + 1n, at(40)],
    ])
  })
})

test('a damaged index changes nothing; a segment that is known to have lost packets is named by its time', async () => {
  const at = (index: number) => 1_700_000_000_000_000_000n + BigInt(index) * MS
  await using appliance = await startTempAppliance({ segmentBytes: 1 << 16 })
  const file = join(appliance.folder, 'd.pcap')
  const packets = Array.from({ length: 600 }, (_, index) => makePacket(at(index), `${index}`, 6_000))
  await writeFile(file, makePcap(packets))
  await appliance.importFiles('d', file)
  const folder = join(appliance.storePath, 'captures', 'd', 'cap0', '00000')
  const segments = (await readdir(folder)).filter((name) => name.endsWith('.pcap')).sort()
  assert.ok(segments.length > 40)
  const path = join(folder, segments[2] ?? '').slice(0, -'.pcap'.length)
  const query = (from: number, to: number, buckets: number) =>
    `TSBegin=${at(from)}&TSEnd=${at(to)}&TSUnit=nanos&Buckets=${buckets}`
  // Captures with many segments, whose reports are cached, and with few.
  const kinds = [
    [0, 600, 600],
    [0, 100, 100],
  ] as const
  const bytes = await readFile(`${path}.idx`)
  bytes[20] = (bytes[20] ?? 0) ^ 1
  await writeFile(`${path}.idx`, bytes)
  for (const [from, to, buckets] of kinds) {
    const told = await activity(appliance, query(from, to, buckets))
    assert.deepEqual([sum(told.packets), told.exact, told.damaged], [to - from, true, []])
  }
  for (const ending of ['pcap', 'idx', 'tally', 'sieve']) await rm(`${path}.${ending}`)
  // Before the store has been verified for the first time.
  const seen = await activity(appliance, query(0, 100, 100))
  assert.equal(pairs(seen.damaged).length, 1)
  const splits = await appliance.get('/stream/stime?StreamName=d&StreamView=split_1min')
  assert.equal(splits.status, 200)
  const [split] = splits.json().List as readonly { readonly PacketCntExact: string }[]
  const { findings } = await appliance.recorder.verify(true, {})
  assert.deepEqual(
    findings.map(({ kind, isRepaired }) => [kind, isRepaired]),
    [['segment-missing', true]],
  )
  const lost = Number(findings[0]?.packets)
  assert.deepEqual([sum(seen.packets), split?.PacketCntExact], [100 - lost, String(600 - lost)])
  for (const [from, to, buckets] of [...kinds, [0, 600, 1]] as const) {
    const told = await activity(appliance, query(from, to, buckets))
    assert.equal(sum(told.packets), to - from - lost)
    const [[begin = 0n, end = 0n] = [], ...others] = pairs(told.damaged)
    assert.deepEqual(others, [])
    assert.ok(begin > at(10) && end < at(40) && end - begin > 5n * MS, `${begin} ${end}`)
  }
})

test('the activity of captures of every kind has the packets that tcpdump has', async () => {
  const ours = capturesNamed('plain.pcap', 'mixed-out-of-order.pcap', 'jumbo.pcap', 'one-interface.pcapng')
  for (const [index, path] of [...ours, ...capturesNamed('n3550_exnic-fcsu.pcap')].entries()) {
    const name = `kind${index}`
    await using own = await startTempAppliance({ segmentBytes: 1 << 18 })
    await own.importFiles(name, path)
    const times = timesIn(path)
    const [first = 0n, last = 0n] = [
      times.reduce((a, b) => (a < b ? a : b)),
      times.reduce((a, b) => (a > b ? a : b)),
    ]
    const from = first - (first % MS)
    const told = await activity(own, `TSBegin=${from}&TSEnd=${last + 1n}&Buckets=500`)
    assert.equal(sum(told.packets), times.length, path)
    assert.ok(farthest(told.packets, counted(times, told)) <= 2 + times.length / 50, path)
  }
})
