import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import {
  type MergedInput,
  type MergeOptions,
  type MergeTotals,
  PcapMerge,
} from '../../../../src/gateway/pcap/merge.ts'
import { PcapInput } from '../../../../src/gateway/pcap/pcap-input.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import {
  inArrivingChunks,
  inChunks,
  makePacket,
  makePcap,
  makeRecord,
} from '../../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../../../support/packets/pcap-records.ts'
import { type SeededRandom, seededRandom } from '../../../support/seeded-random.ts'

const run = promisify(execFile)
const START_NS = 1_700_000_000_000_000_000n
const IS_LONG = process.env.CAPFLEET_LONG === '1'
const SORT_CASES = IS_LONG ? 5_000 : 300
const MERGECAP_CASES = IS_LONG ? 200 : 20

test(`merges as a sort by (running maximum, input, arrival) does: ${SORT_CASES} random cases`, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < SORT_CASES; round++) {
    const isFine = random.next() < 0.7
    const lists = randomInputs(random, { lateShare: 0.2, nanoseconds: isFine })
    // Times in whole microseconds, in files of either resolution.
    const resolutions = lists.map(() => isFine || random.next() < 0.3)
    const files = lists.map((records, i) => makePcap(records, { nanoseconds: resolutions[i] ?? true }))
    const nanoseconds = resolutions.includes(true)
    const { bytes, totals } = await collect(files, () => random.integer(1, 60), {
      toMicroseconds: !nanoseconds,
    })
    const expected = sortedByKey(lists)
    assert.deepEqual(bytes, makePcap(expected, { nanoseconds }).subarray(24), `round ${round}`)
    assert.deepEqual(totals, expectedTotals(lists), `round ${round}`)
  }
})

test('the sort oracle notices two records that changed places', () => {
  const lists = [[makePacket(2n, 'a')], [makePacket(1n, 'b'), makePacket(3n, 'c')]]
  const sorted = sortedByKey(lists).map((record) => record.captured.toString())
  assert.deepEqual(sorted, ['b', 'a', 'c'])
})

test('gives the same bytes wherever the chunks end', async () => {
  const lists = [
    [
      makePacket(START_NS, 'one'),
      makePacket(START_NS + 5n, ''),
      makePacket(START_NS + 2_000_000_000n, 'three'),
    ],
    [makePacket(START_NS + 5n, 'equal'), makePacket(START_NS + 4n, 'late')],
  ]
  const files = lists.map((records) => makePcap(records))
  const expected = makePcap(sortedByKey(lists)).subarray(24)
  for (let chunkBytes = 1; chunkBytes <= Math.max(...files.map((file) => file.byteLength)); chunkBytes++) {
    assert.deepEqual((await collect(files, () => chunkBytes)).bytes, expected, `chunks of ${chunkBytes}`)
  }
})

test(`agrees with mergecap in ${MERGECAP_CASES} random cases, up to the order of equal timestamps`, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  const folder = await mkdtemp(join(tmpdir(), 'capfleet-merge-'))
  t.after(() => rm(folder, { recursive: true }))
  for (let round = 0; round < MERGECAP_CASES; round++) {
    const files = randomInputs(random, { lateShare: 0, nanoseconds: true }).map((records) =>
      makePcap(records),
    )
    const paths = files.map((_, i) => join(folder, `${i}.pcap`))
    await Promise.all(files.map((file, i) => writeFile(paths[i] ?? '', file)))
    const mergedPath = join(folder, 'merged.pcap')
    await run('mergecap', ['-F', 'nsecpcap', '-w', mergedPath, ...paths])
    const ours = await collect(files, () => random.integer(1, 2000))
    const header = makePcap([])
    const our = readPcap(Buffer.concat([header, ours.bytes])).records
    const theirs = readPcap(await readFile(mergedPath)).records
    assert.deepEqual(
      our.map(({ ns }) => ns),
      theirs.map(({ ns }) => ns),
      `round ${round}`,
    )
    // Each line begins with the timestamp: sorting them changes only the order of ties.
    assert.deepEqual(recordLines(our).sort(), recordLines(theirs).sort(), `round ${round}`)
  }
})

test('merges 64 inputs of many packets and passes on large chunks', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  const lists = Array.from({ length: 64 }, (_, i) =>
    Array.from({ length: 300 }, (_, n) =>
      makePacket(START_NS + BigInt(n * 1000 + random.integer(0, 999)), `${i}.${n}`, random.integer(10, 1500)),
    ),
  )
  const files = lists.map((records) => makePcap(records))
  const { bytes, chunkBytes } = await collect(files, () => 16_384)
  assert.deepEqual(bytes, makePcap(sortedByKey(lists)).subarray(24))
  assert.ok(Math.max(...chunkBytes) > 240_000, 'small runs are gathered into large chunks')
  assert.ok(Math.max(...chunkBytes) <= PcapMerge.outputBytes / 2)
})

test('a file cut anywhere gives an error that names it, and never a wrong record', async () => {
  const whole = makePcap([makePacket(START_NS + 1n, 'whole')])
  const records = [START_NS, START_NS + 2n, START_NS + 3n].map((ns, i) => makePacket(ns, `packet ${i}`))
  const file = makePcap(records)
  const ends = new Set(
    records.map((_, i) => makePcap(records.slice(0, i)).byteLength).concat(file.byteLength),
  )
  const expected = makePcap(sortedByKey([records, [makePacket(START_NS + 1n, 'whole')]])).subarray(24)
  for (let cut = 24; cut <= file.byteLength; cut++) {
    const yielded: Buffer[] = []
    const merging = async () => {
      const merge = await openMerge([file.subarray(0, cut), whole], () => 7)
      for await (const chunk of merge.chunks()) yielded.push(Buffer.from(chunk))
    }
    if (ends.has(cut)) {
      await merging()
      continue
    }
    await assert.rejects(merging, isProtocolError(/^device 0: the stream ended inside a record at offset/))
    const bytes = Buffer.concat(yielded)
    assert.deepEqual(bytes, expected.subarray(0, bytes.byteLength), `cut at ${cut}`)
    assert.doesNotThrow(() => readPcap(Buffer.concat([file.subarray(0, 24), bytes])), 'whole records only')
  }
})

test('yields what came before an input failed, then passes its error on unchanged', async () => {
  const cause = new Error('socket reset')
  const file = makePcap([makePacket(START_NS, 'before')])
  const failing = await PcapInput.open('rome', failingAfter(file, cause))
  const yielded: Buffer[] = []
  await assert.rejects(async () => {
    for await (const chunk of new PcapMerge([failing]).chunks()) yielded.push(Buffer.from(chunk))
  }, cause)
  assert.deepEqual(Buffer.concat(yielded), file.subarray(24))
  assert.equal(failing.figures.packets, 1)
})

test('ends before the first packet at tsMaxNs after the first one, and closes the inputs', async () => {
  for (const nanoseconds of [true, false]) {
    const step = nanoseconds ? 1n : 1000n
    const timestamps = [0n, 9n, 10n, 11n].map((n) => START_NS + n * step)
    const closed: string[] = []
    const inputs = await Promise.all(
      ['rome', 'oslo'].map((name) => {
        const file = makePcap(
          timestamps.map((ns) => makePacket(ns, name)),
          { nanoseconds },
        )
        return PcapInput.open(
          name,
          watched(file, () => closed.push(name)),
        )
      }),
    )
    const { totals } = await drain(new PcapMerge(inputs, { tsMaxNs: 10n * step }))
    assert.equal(totals.packets, 4)
    assert.deepEqual(
      totals.inputs.map((input) => input.lastNs),
      [timestamps[1], timestamps[1]],
    )
    assert.deepEqual(closed.sort(), ['oslo', 'rome'])
  }
})

test('tsMaxNs between two microseconds keeps the earlier one', async () => {
  const files = [
    makePcap(
      [0n, 1000n, 2000n].map((ns) => makePacket(START_NS + ns, '')),
      { nanoseconds: false },
    ),
  ]
  const { totals } = await drain(await openMerge(files, () => 100, { tsMaxNs: 1500n }))
  assert.equal(totals.packets, 2)
})

test('what is ready goes out before the merge waits for a slow input', async () => {
  const slow = new HandFed()
  slow.feed(makePcap([makePacket(START_NS + 10n, 'slow')]))
  const fast = makePcap([5n, 15n].map((n) => makePacket(START_NS + n, 'fast')))
  const inputs = [await PcapInput.open('slow', slow), await PcapInput.open('fast', inChunks(fast, 1000))]
  const merge = new PcapMerge(inputs).chunks()
  assert.deepEqual(texts((await merge.next()).value), ['fast', 'slow'])
  slow.feed(makeRecord(makePacket(START_NS + 12n, 'slow 2')))
  assert.deepEqual(texts((await merge.next()).value), ['slow 2'])
  slow.end()
  assert.deepEqual(texts((await merge.next()).value), ['fast'])
  assert.equal((await merge.next()).done, true)
})

test('never asks an input for more than the chunk that it needs next', async () => {
  const asked = [0, 0]
  const inputs = await Promise.all(
    asked.map((_, i) =>
      PcapInput.open(`device ${i}`, counted(asked, i, packetChunks(START_NS, 200, 20_000))),
    ),
  )
  const merge = new PcapMerge(inputs).chunks()
  assert.deepEqual(asked, [1, 1])
  let yieldedBytes = 0
  for (let next = await merge.next(); next.done !== true; next = await merge.next()) {
    yieldedBytes += next.value.byteLength
    await setImmediate()
    const chunkRecords = (asked[0] ?? 0) + (asked[1] ?? 0) - 2
    assert.ok(chunkRecords * 20_016 <= yieldedBytes + 2 * 20_016, 'one chunk ahead per input at most')
  }
  assert.equal(yieldedBytes, 400 * 20_016)
})

test('returning early gives all inputs back', async () => {
  const closed: string[] = []
  const names = ['rome', 'oslo', 'bern']
  const chunks = Buffer.concat([
    makePcap([]),
    ...Array.from({ length: 100 }, () => makeRecord(makePacket(1n, '', 99_000))),
  ])
  const inputs = await Promise.all(
    names.map((name) =>
      PcapInput.open(
        name,
        watched(chunks, () => closed.push(name)),
      ),
    ),
  )
  for await (const _ of new PcapMerge(inputs).chunks()) break
  assert.deepEqual(closed.sort(), ['bern', 'oslo', 'rome'])
})

test('returning while an input is silent does not wait for it', async () => {
  const silent = new HandFed()
  silent.feed(makePcap([makePacket(1n, 'only')]))
  const merge = new PcapMerge([await PcapInput.open('silent', silent)]).chunks()
  await merge.next()
  await merge.return()
  assert.equal(silent.returned, 1)
})

test('the signal ends a wait at once, with its reason', async () => {
  const silent = new HandFed()
  silent.feed(makePcap([makePacket(1n, 'only')]))
  const leaving = new AbortController()
  const merge = new PcapMerge([await PcapInput.open('silent', silent)], { signal: leaving.signal }).chunks()
  await merge.next()
  const waiting = merge.next()
  const reason = new Error('the client left')
  leaving.abort(reason)
  await assert.rejects(waiting, reason)
  assert.equal(silent.returned, 1)
})

test('no input and empty inputs give nothing, without an error', async () => {
  assert.deepEqual((await drain(new PcapMerge([]))).totals, { packets: 0, inputs: [], nextNs: undefined })
  const { bytes, totals } = await collect([makePcap([]), makePcap([])], () => 10)
  assert.deepEqual([bytes.byteLength, totals.packets, totals.inputs.length], [0, 0, 2])
})

/** Timestamps from a small range, so that many are equal; some inputs are empty. */
function randomInputs(
  random: SeededRandom,
  options: { lateShare: number; nanoseconds: boolean },
): PcapRecord[][] {
  const unit = options.nanoseconds ? 1 : 1000
  return Array.from({ length: random.integer(1, 6) }, (_, input) => {
    let offset = random.integer(0, 20)
    const count = random.next() < 0.2 ? 0 : random.integer(1, 25)
    return Array.from({ length: count }, (_, n) => {
      offset += random.pick([0, 0, 1, 2, 40, 400_000])
      const late = random.next() < options.lateShare ? random.integer(0, Math.min(offset, 50)) : 0
      const ns = START_NS + BigInt((offset - late) * unit) * random.pick([1n, 1n, 1000n])
      return makePacket(ns, `${input}.${n}`.slice(0, random.integer(0, 6)), random.integer(0, 40))
    }).sort((a, b) => (options.lateShare === 0 ? Number(a.ns - b.ns) : 0))
  })
}

/** The definition of the merged order, in its simplest form. */
function sortedByKey(lists: readonly (readonly PcapRecord[])[]): PcapRecord[] {
  const keyed = lists.flatMap((records) => {
    let key = 0n
    return records.map((record) => {
      if (record.ns > key) key = record.ns
      return { key, record }
    })
  })
  return keyed.sort((a, b) => Number(a.key - b.key)).map(({ record }) => record)
}

function expectedTotals(lists: readonly (readonly PcapRecord[])[]) {
  const inputs = lists.map((records, i) => {
    let latest = 0n
    let outOfOrder = 0
    for (const { ns } of records) {
      if (ns < latest) outOfOrder++
      else latest = ns
    }
    return {
      name: `device ${i}`,
      packets: records.length,
      bytes: records.reduce((sum, record) => sum + 16 + record.captured.byteLength, 0),
      firstNs: records[0]?.ns,
      lastNs: records.length === 0 ? undefined : latest,
      outOfOrder,
      duplicates: 0,
    }
  })
  return { packets: inputs.reduce((sum, { packets }) => sum + packets, 0), inputs, nextNs: undefined }
}

/** Two of three chunks have arrived when they are requested. */
async function openMerge(files: readonly Buffer[], chunkBytes: () => number, options?: MergeOptions) {
  let asked = 0
  const hasArrived = () => {
    asked += 1
    return asked % 3 > 0
  }
  const inputs = files.map((file, i) =>
    PcapInput.open(`device ${i}`, inArrivingChunks(file, chunkBytes(), hasArrived)),
  )
  return new PcapMerge(await Promise.all(inputs), options)
}

async function collect(files: readonly Buffer[], chunkBytes: () => number, options?: MergeOptions) {
  const { chunks, totals } = await drain(await openMerge(files, chunkBytes, options))
  return { bytes: Buffer.concat(chunks), chunkBytes: chunks.map((chunk) => chunk.byteLength), totals }
}

/** A chunk is read as late as allowed: when the next one has been requested. */
async function drain(merge: PcapMerge) {
  const chunks: Buffer[] = []
  let latest: Buffer | undefined
  for await (const chunk of merge.chunks()) {
    if (latest !== undefined) chunks.push(Buffer.from(latest))
    latest = chunk
  }
  if (latest !== undefined) chunks.push(Buffer.from(latest))
  return { chunks, totals: withoutStalls(merge.totals) }
}

/** How long it took is not the subject of these tests. */
function withoutStalls({ packets, inputs, nextNs }: MergeTotals) {
  const steady = inputs.map(({ stalledMs: _, ...input }: MergedInput) => input)
  return { packets, inputs: steady, nextNs }
}

function texts(recordBytes: unknown): string[] {
  assert.ok(Buffer.isBuffer(recordBytes))
  const file = Buffer.concat([makePcap([]), recordBytes])
  return readPcap(file).records.map((record) => record.captured.toString())
}

function isProtocolError(message: RegExp) {
  return (error: unknown) =>
    error instanceof CapfleetError && error.code === 'device-protocol' && message.test(error.message)
}

async function* failingAfter(bytes: Buffer, error: Error): AsyncGenerator<Buffer, void> {
  yield bytes
  throw error
}

async function* watched(bytes: Buffer, onClose: () => void): AsyncGenerator<Buffer, void> {
  try {
    yield* inChunks(bytes, 50_000)
  } finally {
    onClose()
  }
}

async function* packetChunks(
  startNs: bigint,
  count: number,
  capturedLength: number,
): AsyncGenerator<Buffer, void> {
  yield makePcap([])
  for (let n = 0; n < count; n++) yield makeRecord(makePacket(startNs + BigInt(n), '', capturedLength))
}

async function* counted(
  asked: number[],
  index: number,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void> {
  for await (const chunk of chunks) {
    asked[index] = (asked[index] ?? 0) + 1
    yield chunk
  }
}

/** A stream whose chunks the test delivers one by one. */
class HandFed implements AsyncIterator<Buffer> {
  returned = 0
  readonly #chunks: Buffer[] = []
  #ended = false
  #wake: (() => void) | undefined

  feed(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#wake?.()
  }

  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    while (this.#chunks.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const value = this.#chunks.shift()
    return value === undefined ? { done: true, value: undefined } : { value }
  }

  return(): Promise<IteratorResult<Buffer, undefined>> {
    this.returned++
    return Promise.resolve({ done: true, value: undefined })
  }
}
