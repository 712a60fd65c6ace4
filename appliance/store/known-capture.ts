import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { LogEntryKind, SegmentFlag } from '../../native/segment-entry.ts'
import type { CaptureRecord } from './capture-record.ts'
import { GrowingSegments } from './growing-segments.ts'
import { type ReadCapture, readCapture, recordOfSegments } from './read-capture.ts'
import { readSegmentLog } from './segment-log.ts'
import { SegmentTable } from './segment-table.ts'
import { CAPTURE_RECORD_NAME, RECORD_COPY_NAME, SEGMENT_LOG_NAME } from './store-paths.ts'
import { type StoredCapture, storedCapture } from './stored-capture.ts'

/** The largest timestamp of a packet, and one more: PCAP has 32 bits of seconds. */
const MAX_NS = 2n ** 32n * 1_000_000_000n
/** Never the identity of a record. */
const UNREAD = 'unread'

/** A capture as its reader knows it, brought up to date by reading what is new. */
export class KnownCapture {
  readonly #folder: string
  readonly #stamp: string
  readonly #growing = new GrowingSegments()
  #read: ReadCapture
  #finished: StoredCapture

  private constructor(folder: string, stamp: string, read: ReadCapture) {
    this.#folder = folder
    this.#stamp = stamp
    this.#read = read
    this.#finished = storedCapture(read.record, read.table, read)
  }

  /**
   * The capture in this folder as it is now: `before` itself if its record is unchanged, extended by the new entries of
   * its log. undefined: the folder is not a capture. Fails like reading it.
   */
  static async read(
    folder: string,
    name: string,
    before: KnownCapture | undefined,
  ): Promise<KnownCapture | undefined> {
    const stamp = await stampOf(folder)
    if (before !== undefined && before.#stamp === stamp && (await before.#readTail())) return before
    const read = await readCapture(folder, name, { isWritten: true })
    return read && new KnownCapture(folder, stamp, read)
  }

  /** A capture about which nothing is known, except that it may have packets of any time. */
  static unreadable(folder: string, name: string, problem: string): KnownCapture {
    const table = new SegmentTable()
    const record = recordOfSegments(name, {
      state: 'closed',
      createdAt: new Date(0),
      startNs: 0n,
      endNs: MAX_NS,
    })
    table.apply({
      kind: LogEntryKind.finished,
      port: 0,
      flags: SegmentFlag.damaged,
      number: 1,
      minNs: record.startNs,
      maxNs: record.endNs - 1n,
      packets: 0n,
      bytes: 0n,
      linkType: 1,
      snaplen: 0,
      sideBytes: 0,
      checksum: 0,
    })
    const read = { record, revision: 0, table, position: undefined, format: 2, isSound: false } as const
    return new KnownCapture(folder, UNREAD, { ...read, problems: [problem] })
  }

  get record(): CaptureRecord {
    return this.#read.record
  }

  get problems(): readonly string[] {
    return this.#read.problems
  }

  get isActive(): boolean {
    return this.record.state === 'active'
  }

  /** The capture with its finished segments only. */
  get finished(): StoredCapture {
    return this.#finished
  }

  /**
   * For an active capture, includes what is flushed of the unfinished segments.
   */
  async grown(): Promise<StoredCapture> {
    if (!this.isActive) return this.#finished
    const { record, table, problems } = this.#read
    const growing = await this.#growing.measure({ table, folder: this.#folder, startNs: record.startNs })
    return storedCapture(record, table, { growing, problems })
  }

  /** False if the log was replaced, or cannot be read any further: then everything is read again. */
  async #readTail(): Promise<boolean> {
    const { position, table } = this.#read
    // A record of format 1 is its own log.
    if (position === undefined) return this.#read.format === 1
    const found = await readSegmentLog(join(this.#folder, SEGMENT_LOG_NAME), table, position)
    if (found === undefined || found === 'replaced') return false
    if (found.damagedEntries > position.damagedEntries || (found.isTorn && !this.isActive)) return false
    this.#read = { ...this.#read, position: found }
    if (found.end !== position.end) this.#finished = storedCapture(this.record, table, this.#read)
    return true
  }
}

/** The identity of both copies of the record: one may be damaged and repaired. */
async function stampOf(folder: string): Promise<string> {
  const stamps = await Promise.all(
    [CAPTURE_RECORD_NAME, RECORD_COPY_NAME].map(async (name) => {
      try {
        const { ino, mtimeNs, size } = await stat(join(folder, name), { bigint: true })
        return `${ino} ${mtimeNs} ${size}`
      } catch {
        return ''
      }
    }),
  )
  return stamps.join(' ')
}
