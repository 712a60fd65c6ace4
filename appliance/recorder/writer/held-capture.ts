/**
 * A capture as the recorder holds it: in memory, and on disk after each change. The only code that changes the record
 * and the log of a capture. Owned by StoreWriter, which serializes changes.
 */
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type LogEntry, LogEntryKind } from '../../../native/segment-entry.ts'
import { syncPath } from '../../../src/shared/base/durable-files.ts'
import { type CaptureRecord, encodeRecord, type RevisedRecord } from '../../store/capture-record.ts'
import { type ReadCapture, readCapture } from '../../store/read-capture.ts'
import { type Drops, SegmentTable } from '../../store/segment-table.ts'
import { sideBytesOf } from '../../store/segments-on-disk.ts'
import {
  CAPTURE_RECORD_NAME,
  RECORD_COPY_NAME,
  SEGMENT_LOG_NAME,
  segmentPath,
} from '../../store/store-paths.ts'
import { entriesOf, type StoredCapture, storedCapture } from '../../store/stored-capture.ts'
import { replaceFile } from './move-aside.ts'
import { dropsEntry, SegmentLogWriter } from './segment-log-writer.ts'

const NO_SEGMENT = {
  port: 0,
  number: 0,
  flags: 0,
  minNs: 0n,
  maxNs: 0n,
  linkType: 0,
  snaplen: 0,
  sideBytes: 0,
  checksum: 0,
}

export class HeldCapture {
  readonly folder: string
  readonly table: SegmentTable
  /** What was wrong with it when it was read. */
  readonly problems: readonly string[]
  #record: CaptureRecord
  #revision: number
  #log: SegmentLogWriter

  private constructor(
    folder: string,
    read: Pick<ReadCapture, 'record' | 'revision' | 'table' | 'problems'>,
    log: SegmentLogWriter,
  ) {
    this.folder = folder
    this.#record = read.record
    this.#revision = read.revision
    this.table = read.table
    this.problems = read.problems
    this.#log = log
  }

  /**
   * Writes a new capture into an existing folder without syncing; the caller syncs before it gives the folder its
   * name.
   */
  static async create(
    folder: string,
    record: CaptureRecord,
    segments: readonly LogEntry[] = [],
  ): Promise<void> {
    const table = new SegmentTable()
    for (const segment of segments) table.apply(segment)
    if (record.state === 'closed') table.apply(closedEntry())
    await SegmentLogWriter.create(join(folder, SEGMENT_LOG_NAME), table)
    const text = encodeRecord({ ...record, revision: 1 })
    for (const name of [CAPTURE_RECORD_NAME, RECORD_COPY_NAME]) {
      await using file = await open(join(folder, name), 'wx', 0o640)
      await file.writeFile(text)
    }
  }

  /**
   * Reads the folder; returns undefined if it is not a capture. Changes nothing on disk: mend() does that, according
   * to `isSound` and `format` of the capture that was read. Fails like readCapture().
   */
  static async read(folder: string, name: string): Promise<HeldCapture | undefined> {
    const read = await readCapture(folder, name, { isWritten: false })
    if (read === undefined) return undefined
    const { position } = read
    const path = join(folder, SEGMENT_LOG_NAME)
    const mustRewrite = position === undefined || position.damagedEntries > 0 || position.isTorn
    const log = await SegmentLogWriter.continue(path, { end: position?.end ?? 0, mustRewrite })
    const held = new HeldCapture(folder, read, log)
    held.#wants = { upgrade: read.format === 1, mending: !read.isSound }
    return held
  }

  #wants = { upgrade: false, mending: false }
  readonly #end = new AbortController()
  readonly #uses = new Set<Promise<unknown>>()

  /**
   * Runs work on the files of this capture, which cannot be deleted before it has settled: afterwards another capture
   * may have its name and its paths. The signal aborts when it is to be deleted. Returns undefined if it is or was
   * deleted.
   */
  async use<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result | undefined> {
    const { signal } = this.#end
    if (signal.aborted) return undefined
    const running = work(signal)
    this.#uses.add(running)
    try {
      return await running
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    } finally {
      this.#uses.delete(running)
    }
  }

  /** Ends all uses, and allows no further ones. */
  async end(): Promise<void> {
    this.#end.abort(new Error('the capture is deleted'))
    await Promise.allSettled(this.#uses)
  }

  get record(): CaptureRecord {
    return this.#record
  }

  get stored(): StoredCapture {
    return storedCapture(this.#record, this.table, this)
  }

  /** Whether it is from a store of format 1. */
  get isOld(): boolean {
    return this.#wants.upgrade
  }

  /**
   * Brings the files in line with what is in memory: converts a capture of format 1, and repairs damaged copies and
   * logs. May be interrupted at any point, and is then repeated. Returns false if there was nothing to do. Fails with
   * disk errors.
   */
  async mend(): Promise<boolean> {
    const isRewritten = this.#wants.upgrade || this.#wants.mending
    if (isRewritten && this.#record.state === 'closed') this.table.apply(closedEntry())
    if (this.#wants.upgrade) {
      await this.#measureSides()
      await this.#log.rewrite(this.table)
      // While capture.json is of format 1, nothing else in the folder counts.
      await this.#writeRecord(this.#record)
    } else if (this.#wants.mending) {
      await this.#log.rewrite(this.table)
      await this.#writeRecord(this.#record)
    } else if (this.#record.state === 'closed' && !this.table.isClosed) {
      await this.#log.append([closedEntry()], this.table)
    } else return false
    this.#wants = { upgrade: false, mending: false }
    return true
  }

  /** Deviations of record, copy and log on disk from what was written. Fails like readCapture(). */
  async check(): Promise<readonly string[]> {
    const read = await readCapture(this.folder, this.#record.name, { isWritten: false })
    if (read === undefined) return [`${this.folder} has no record, no copy and no log`]
    if (read.isSound || read.problems.length > 0) return read.problems
    return [`${join(this.folder, SEGMENT_LOG_NAME)} has been truncated`]
  }

  /** Writes record, copy and log again, from memory. Fails with disk errors. */
  async rewrite(): Promise<void> {
    this.#wants = { ...this.#wants, mending: true }
    await this.mend()
  }

  /** Fails with disk errors; the change then counts as not made, but may still be there after a restart. */
  async changeRecord(change: (record: CaptureRecord) => CaptureRecord): Promise<void> {
    const record = change(this.#record)
    await this.#writeRecord(record)
    if (record.state === 'closed' && !this.table.isClosed) {
      await this.#log.append([closedEntry()], this.table)
    }
  }

  /** Adds finished segments, or updates of some, with the losses so far. Fails with disk errors, changing nothing. */
  async addSegments(segments: readonly LogEntry[], drops?: Drops): Promise<void> {
    const before = this.table.drops
    const isSame = drops === undefined || (before?.ring === drops.ring && before.disk === drops.disk)
    const losses = isSame ? [] : [dropsEntry(drops, this.table)]
    const entries = [...segments, ...losses]
    if (entries.length > 0) await this.#log.append(entries, this.table)
  }

  /** Removes segments durably; the caller then removes their files. Fails with disk errors. */
  async dropSegments(segments: readonly LogEntry[]): Promise<void> {
    await this.#log.append(
      segments.map((segment) => ({ ...segment, kind: LogEntryKind.removed })),
      this.table,
    )
  }

  /** The copy first: the newer revision counts, so that one of them is complete at any moment. */
  async #writeRecord(record: CaptureRecord): Promise<void> {
    const revised = { ...record, revision: this.#revision + 1 }
    await replaceRecord(this.folder, RECORD_COPY_NAME, revised)
    await replaceRecord(this.folder, CAPTURE_RECORD_NAME, revised)
    this.#revision += 1
    this.#record = record
  }

  /** Records of format 1 do not contain the sizes of a segment's other files. */
  async #measureSides(): Promise<void> {
    for (const port of this.table.ports) {
      const segments = [...entriesOf(port)]
      for (let first = 0; first < segments.length; first += MEASURED_AT_ONCE) {
        const some = segments.slice(first, first + MEASURED_AT_ONCE)
        const sides = await Promise.all(
          some.map(({ number }) =>
            sideBytesOf(segmentPath(this.folder, port.port, { number, isFlat: true })),
          ),
        )
        for (const [index, segment] of some.entries()) port.put({ ...segment, sideBytes: sides[index] ?? 0 })
      }
    }
  }
}

/** Concurrent stats of segment files while a store of format 1 is upgraded. */
const MEASURED_AT_ONCE = 256

function closedEntry(): LogEntry {
  return { ...NO_SEGMENT, kind: LogEntryKind.closed, packets: 0n, bytes: 0n }
}

async function replaceRecord(folder: string, name: string, record: RevisedRecord): Promise<void> {
  const path = join(folder, name)
  const next = `${path}.next`
  try {
    await using file = await open(next, 'w', 0o640)
    await file.writeFile(encodeRecord(record))
    await file.sync()
    await replaceFile(next, path)
  } catch (error) {
    await rm(next, { force: true }).catch(() => undefined)
    throw error
  }
  await syncPath(folder)
}
