import type { StoppedCapture } from '../link/capture-report.ts'
import { fullCaptureNames } from '../store/capture-names.ts'
import type { CaptureRecord, StreamRecord } from '../store/capture-record.ts'
import type { CaptureTarget } from './capture-driver.ts'
import type { Drops } from './capture-tally.ts'
import type { StoreWriter } from './store-writer.ts'

export interface NewCapture {
  readonly baseName: string
  /** Row of the schedule that starts it; absent = started by command. */
  readonly scheduleName: string | undefined
  readonly startNs: bigint
  /** IANA name: the zone of the time in its name. */
  readonly timeZone: string
  readonly bootId: string
  readonly description: string
}

/** A capture of the store that is being recorded, and the upkeep of its record. One call at a time. */
export class RecordedCapture {
  /** As it was found or made. */
  readonly record: CaptureRecord
  readonly name: string
  readonly baseName: string
  /** Empty = started by command. */
  readonly scheduleName: string
  readonly startNs: bigint
  /** What it lost under earlier recorders. */
  readonly earlierDrops: Drops | undefined
  readonly #writer: StoreWriter
  /** Every finished segment so far, also those that the store has removed meanwhile. */
  #streams: readonly StreamRecord[]

  private constructor(writer: StoreWriter, record: CaptureRecord, streams: readonly StreamRecord[]) {
    this.#writer = writer
    this.#streams = streams
    this.record = record
    this.name = record.name
    this.baseName = record.baseName ?? record.name
    this.scheduleName = record.scheduleName ?? ''
    // The range of the record may begin earlier, with a packet of a clock that was set back.
    this.startNs = larger(record.startNs, BigInt(Date.parse(record.createdAt)) * 1_000_000n)
    this.earlierDrops = record.drops
  }

  /** Makes it appear in the store, under the first name that is free. */
  static async make(writer: StoreWriter, options: NewCapture): Promise<RecordedCapture> {
    for (const name of fullCaptureNames(options.baseName, options.startNs, options.timeZone)) {
      const record = newRecord(name, options)
      if (await writer.makeCapture(record)) return new RecordedCapture(writer, record, [])
    }
    throw new Error('the names do not end')
  }

  /** Goes on with one that an earlier recorder left; these are its streams after recovery. */
  static async adopt(
    writer: StoreWriter,
    left: {
      readonly record: CaptureRecord
      readonly streams: readonly StreamRecord[]
      readonly bootId: string
    },
  ): Promise<RecordedCapture> {
    const { record, streams, bootId } = left
    await writer.changeRecord(record.name, (stored) => ({ ...withStreams(stored, streams), bootId }))
    return new RecordedCapture(writer, record, streams)
  }

  get target(): CaptureTarget {
    return { name: this.name, folder: this.#writer.folderOf(this.name) }
  }

  get streams(): readonly StreamRecord[] {
    return this.#streams
  }

  /** The same with what a driver says of it at its end. */
  streamsWith(streams: readonly StreamRecord[]): readonly StreamRecord[] {
    return joined(this.#streams, newSegments(this.#streams, streams))
  }

  /** Takes segments that have been finished into the record. Whether there were new ones. */
  async add(streams: readonly StreamRecord[], drops: Drops): Promise<boolean> {
    const fresh = newSegments(this.#streams, streams)
    if (fresh.length === 0) return false
    await this.#writer.changeRecord(this.name, (record) => ({
      ...withStreams(record, joined(record.streams, fresh)),
      drops,
    }))
    this.#streams = joined(this.#streams, fresh)
    return true
  }

  /** Ends it with its last segments. After a failure it can be tried again. */
  async close(streams: readonly StreamRecord[], drops: Drops, nowNs: bigint): Promise<StoppedCapture> {
    const fresh = newSegments(this.#streams, streams)
    const all = this.streamsWith(streams)
    const segments = all.flatMap((stream) => stream.segments)
    const stopNs = segments.reduce(
      (end, { maxNs }) => larger(end, maxNs + 1n),
      larger(nowNs, this.startNs + 1n),
    )
    await this.#writer.changeRecord(this.name, (record) => {
      const closed = withStreams(record, joined(record.streams, fresh))
      return { ...closed, state: 'closed', drops, endNs: larger(closed.endNs, stopNs) }
    })
    this.#streams = all
    return {
      name: this.name,
      baseName: this.baseName,
      stopNs,
      packets: segments.reduce((sum, { packets }) => sum + packets, 0n),
      bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0n),
      drops: drops.ring + drops.disk,
    }
  }

  /** A capture that never began leaves nothing behind. */
  async keepIf<Result>(beginning: Promise<Result>): Promise<Result> {
    try {
      return await beginning
    } catch (error) {
      await this.#writer.deleteCapture(this.name)
      throw error
    }
  }
}

function newRecord(name: string, options: NewCapture): CaptureRecord {
  const { baseName, scheduleName, startNs, bootId, description } = options
  return {
    format: 1,
    name,
    type: 'capture',
    state: 'active',
    description,
    baseName,
    scheduleName,
    bootId,
    createdAt: new Date(Number(startNs / 1_000_000n)).toISOString(),
    startNs,
    endNs: startNs + 1n,
    packets: 0n,
    bytes: 0n,
    streams: [],
    sources: [],
    packetsOutOfTimeRange: 0n,
    damages: [],
  }
}

/** The record with these streams, its counts and its range after them. */
function withStreams(record: CaptureRecord, streams: readonly StreamRecord[]): CaptureRecord {
  const segments = streams.flatMap((stream) => stream.segments)
  return {
    ...record,
    streams: [...streams],
    packets: segments.reduce((sum, { packets }) => sum + packets, 0n),
    bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0n),
    startNs: segments.reduce((start, { minNs }) => smaller(start, minNs), record.startNs),
    endNs: segments.reduce((end, { maxNs }) => larger(end, maxNs + 1n), record.endNs),
  }
}

/** What `streams` has behind the last segments of `known`. */
function newSegments(known: readonly StreamRecord[], streams: readonly StreamRecord[]): StreamRecord[] {
  return streams.flatMap((stream) => {
    const last = known.find(({ port }) => port === stream.port)?.segments.at(-1)?.number ?? 0
    const segments = stream.segments.filter(({ number }) => number > last)
    return segments.length === 0 ? [] : [{ ...stream, segments }]
  })
}

function joined(before: readonly StreamRecord[], fresh: readonly StreamRecord[]): StreamRecord[] {
  const streams = new Map(before.map((stream) => [stream.port, stream]))
  for (const stream of fresh) {
    const segments = [...(streams.get(stream.port)?.segments ?? []), ...stream.segments]
    streams.set(stream.port, { ...stream, segments })
  }
  return [...streams.values()].sort((a, b) => a.port - b.port)
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
