import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { CaptureRecord } from './capture-record.ts'
import { GrowingSegments } from './growing-segments.ts'
import { type ReadCapture, readCapture } from './read-capture.ts'
import { readSegmentLog } from './segment-log.ts'
import { CAPTURE_RECORD_NAME, RECORD_COPY_NAME, SEGMENT_LOG_NAME } from './store-paths.ts'
import { type StoredCapture, storedCapture } from './stored-capture.ts'

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
   * For an active capture, includes what is flushed of the unfinished segments. Fails with store-corrupt and
   * store-unavailable.
   */
  async grown(): Promise<StoredCapture> {
    if (!this.isActive) return this.#finished
    const { record, table, problems } = this.#read
    const growing = await this.#growing.measure(table, this.#folder)
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
