import type { StreamSummary } from '../../../native/import-capture-files.ts'
import type { LogEntry } from '../../../native/segment-entry.ts'
import { PCAP_HEADER_BYTES } from '../../../src/shared/pcap/pcap-sizes.ts'
import type { StoppedCapture } from '../../link/capture-report.ts'
import { fullCaptureNames } from '../../store/capture-names.ts'
import type { CaptureRecord } from '../../store/capture-record.ts'
import type { Drops } from '../../store/segment-table.ts'
import { type StoredCapture, segmentsOf } from '../../store/stored-capture.ts'
import { finishedEntries } from '../writer/finished-entries.ts'
import type { StoreWriter } from '../writer/store-writer.ts'
import type { CaptureTarget } from './capture-driver.ts'

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

/** What the segments of one port hold, as PCAP records. */
export interface PortTotals {
  readonly packets: bigint
  readonly bytes: bigint
}

const NOTHING: PortTotals = { packets: 0n, bytes: 0n }

/** A capture of the store that is being recorded, and the maintenance of its log. One call at a time. */
export class RecordedCapture {
  /** The record as found or created. */
  readonly record: CaptureRecord
  readonly name: string
  readonly baseName: string
  /** Empty = started by command. */
  readonly scheduleName: string
  readonly startNs: bigint
  /** Losses under earlier recorders. */
  readonly earlierDrops: Drops | undefined
  readonly #writer: StoreWriter
  /** Of every finished segment that this recorder has seen, including those that the store has removed since. */
  readonly #totals = new Map<number, PortTotals>()
  /** The number of the last segment in the totals, by port. */
  readonly #lastNumbers = new Map<number, number>()
  /** Finished segments that are not in the log yet. */
  #unlogged: LogEntry[] = []
  #endNs = 0n
  #fileBytes = 0n

  private constructor(writer: StoreWriter, record: CaptureRecord, earlierDrops: Drops | undefined) {
    this.#writer = writer
    this.record = record
    this.name = record.name
    this.baseName = record.baseName ?? record.name
    this.scheduleName = record.scheduleName ?? ''
    // The range of the record may begin earlier, with a packet from before the clock was set.
    this.startNs = larger(record.startNs, BigInt(Date.parse(record.createdAt)) * 1_000_000n)
    this.earlierDrops = earlierDrops
  }

  /** Makes it appear in the store, under the first free name. */
  static async make(writer: StoreWriter, options: NewCapture): Promise<RecordedCapture> {
    for (const name of fullCaptureNames(options.baseName, options.startNs, options.timeZone)) {
      const record = newRecord(name, options)
      if (await writer.makeCapture(record)) return new RecordedCapture(writer, record, undefined)
    }
    throw new Error('the names of a capture are never exhausted')
  }

  /** Resumes one that an earlier recorder left; `recovered` are the segments that are not in its log yet. */
  static async adopt(
    writer: StoreWriter,
    left: {
      readonly capture: StoredCapture
      readonly recovered: readonly LogEntry[]
      readonly bootId: string
    },
  ): Promise<RecordedCapture> {
    const { capture, recovered, bootId } = left
    await writer.addSegments(capture.name, recovered)
    if (capture.bootId !== bootId) {
      await writer.changeRecord(capture.name, (record) => ({ ...record, bootId }))
    }
    const found = (await writer.captureOf(capture.name)) ?? capture
    const adopted = new RecordedCapture(writer, found, found.drops)
    for (const segment of segmentsOf(found)) adopted.#count(segment)
    for (const port of found.table.ports) adopted.#lastNumbers.set(port.port, port.lastNumber)
    return adopted
  }

  get target(): CaptureTarget {
    const folder = this.#writer.folderOf(this.name)
    return { name: this.name, folder, lastNumbers: this.#lastNumbers }
  }

  /** The totals of its finished segments, by port. */
  get totals(): ReadonlyMap<number, PortTotals> {
    return this.#totals
  }

  /** Records finished segments. Those already known change nothing. */
  note(streams: readonly StreamSummary[]): void {
    for (const segment of finishedEntries(streams)) {
      if (segment.number <= (this.#lastNumbers.get(segment.port) ?? 0)) continue
      this.#lastNumbers.set(segment.port, segment.number)
      this.#count(segment)
      this.#unlogged.push(segment)
    }
  }

  /** Adds finished segments to the log. Returns whether there were new ones. May be retried after a failure. */
  async add(streams: readonly StreamSummary[], drops: Drops): Promise<boolean> {
    this.note(streams)
    if (this.#unlogged.length === 0) return false
    await this.save(streams, drops)
    return true
  }

  /**
   * Likewise, and the drops even if there are no new segments: on a full disk everything may have been dropped since the
   * last one. May be retried after a failure.
   */
  async save(streams: readonly StreamSummary[], drops: Drops): Promise<void> {
    this.note(streams)
    await this.#writer.addSegments(this.name, this.#unlogged, drops)
    this.#unlogged = []
  }

  /** Ends it with its last segments. May be retried after a failure. */
  async close(streams: readonly StreamSummary[], drops: Drops, nowNs: bigint): Promise<StoppedCapture> {
    await this.save(streams, drops)
    const stopNs = larger(larger(nowNs, this.startNs + 1n), this.#endNs)
    await this.#writer.changeRecord(this.name, (record) => ({
      ...record,
      state: 'closed',
      endNs: larger(record.endNs, stopNs),
    }))
    const totals = [...this.#totals.values()]
    return {
      name: this.name,
      baseName: this.baseName,
      stopNs,
      packets: totals.reduce((sum, { packets }) => sum + packets, 0n),
      bytes: this.#fileBytes,
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

  #count({ port, packets, bytes, maxNs }: LogEntry): void {
    const before = this.#totals.get(port) ?? NOTHING
    this.#fileBytes += bytes
    this.#totals.set(port, {
      packets: before.packets + packets,
      bytes: before.bytes + bytes - BigInt(PCAP_HEADER_BYTES),
    })
    this.#endNs = larger(this.#endNs, maxNs + 1n)
  }
}

function newRecord(name: string, options: NewCapture): CaptureRecord {
  const { baseName, scheduleName, startNs, bootId, description } = options
  return {
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
    sources: [],
    packetsOutOfTimeRange: 0n,
    damages: [],
  }
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
