/** Writes segments.log (native/FORMAT.md): entries are appended durably into preallocated space. */
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  LOG_ENTRY_BYTES,
  LOG_HEADER_BYTES,
  type LogEntry,
  LogEntryKind,
  packLogEntries,
  sealLogEntries,
} from '../../native/segment-entry.ts'
import { syncPath } from '../../src/shared/base/durable-files.ts'
import { logHeader } from '../store/segment-log.ts'
import type { SegmentTable } from '../store/segment-table.ts'
import { entriesOf } from '../store/stored-capture.ts'

/** The log grows by whole pages of zeros, so that an entry never needs a new disk block. */
const PAGE_BYTES = 4_096
/** Space allocated in advance: an entry for each segment that one pass of retention may remove. */
const ROOM_BYTES = 1_024
/** A log with more entries than this, and more than twice the necessary ones, is rewritten. */
const ENTRIES_MAX = 4_096

/** Appends entries at the end of the log. Owned by the recorder, one call at a time. */
export class SegmentLogWriter {
  readonly #path: string
  #end: number
  /**
   * Size of the file; undefined = the log must be rewritten, because it may contain entries that were never confirmed.
   */
  #size: number | undefined

  private constructor(path: string, end: number, size: number | undefined) {
    this.#path = path
    this.#end = end
    this.#size = size
  }

  /** Creates the log of a new capture, in a folder that the caller syncs. Fails with disk errors. */
  static async create(path: string, table: SegmentTable): Promise<SegmentLogWriter> {
    const { bytes, end } = contentOf(table, [])
    await using file = await open(path, 'w', 0o640)
    await file.writeFile(bytes)
    return new SegmentLogWriter(path, end, bytes.length)
  }

  /** Continues a log that was read up to `end`. `mustRewrite`: it is damaged, or missing. */
  static async continue(
    path: string,
    { end, mustRewrite }: { readonly end: number; readonly mustRewrite: boolean },
  ): Promise<SegmentLogWriter> {
    if (mustRewrite) return new SegmentLogWriter(path, end, undefined)
    await using file = await open(path, 'r')
    const { size } = await file.stat()
    // An interrupted write may have left bytes where the next entries go; they are overwritten.
    return new SegmentLogWriter(path, end, size)
  }

  /**
   * Appends the entries durably, then applies them to the table, which reflects the log. After a failure nothing is
   * applied, and the call can be repeated with the same or other entries.
   */
  async append(entries: readonly LogEntry[], table: SegmentTable): Promise<void> {
    if (this.#size === undefined || this.#hasMany(table)) await this.rewrite(table, entries)
    else await this.#write(entries, this.#size)
    for (const entry of entries) table.apply(entry)
  }

  /** Replaces the log by one with the contents of the table plus these entries. */
  async rewrite(table: SegmentTable, entries: readonly LogEntry[] = []): Promise<void> {
    const { bytes, end } = contentOf(table, entries)
    const next = `${this.#path}.next`
    try {
      await using file = await open(next, 'w', 0o640)
      await file.writeFile(bytes)
      await file.sync()
      await rename(next, this.#path)
    } catch (error) {
      await rm(next, { force: true }).catch(() => undefined)
      throw error
    }
    await syncPath(dirname(this.#path))
    this.#end = end
    this.#size = bytes.length
  }

  #hasMany(table: SegmentTable): boolean {
    const count = (this.#end - LOG_HEADER_BYTES) / LOG_ENTRY_BYTES
    return count > ENTRIES_MAX && count > 2 * table.segments
  }

  async #write(entries: readonly LogEntry[], size: number): Promise<void> {
    const bytes = packLogEntries(entries)
    sealLogEntries(bytes, this.#end)
    const end = this.#end + bytes.length
    await using file = await open(this.#path, 'r+')
    const made = await makeRoom(file, { end, size })
    this.#size = undefined
    // A reader may see the entries before they are durable: if they fail to become so, it must find a different file.
    await writeAll(file, bytes, this.#end)
    await file.datasync()
    this.#size = made
    this.#end = end
  }
}

/** Makes the file long enough, with some extra room if the disk has it. Returns the new size, or fails. */
async function makeRoom(
  file: FileHandle,
  { end, size }: { readonly end: number; readonly size: number },
): Promise<number> {
  const wanted = pagesOf(end + ROOM_BYTES)
  if (wanted <= size) return size
  try {
    await writeAll(file, Buffer.alloc(wanted - size), size)
    return wanted
  } catch (error) {
    // Allocated space is zeros, which are not entries.
    if (end <= size) return size
    throw error
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    done += bytesWritten
  }
}

function pagesOf(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES
}

/** A complete log: its header, an entry for each known fact, the `entries`, and room. */
function contentOf(
  table: SegmentTable,
  entries: readonly LogEntry[],
): { readonly bytes: Buffer; readonly end: number } {
  const packed = packLogEntries([...knownEntries(table), ...entries])
  sealLogEntries(packed, LOG_HEADER_BYTES)
  const header = logHeader()
  sealLogEntries(header, 0)
  const end = LOG_HEADER_BYTES + packed.length
  const bytes = Buffer.concat([header, packed], pagesOf(end + ROOM_BYTES))
  return { bytes, end }
}

const NOTHING_REMOVED = { packets: 0n, bytes: 0n, startNs: 0n, endNs: 0n }
const NO_SEGMENT = { flags: 0, minNs: 0n, maxNs: 0n, linkType: 0, snaplen: 0, sideBytes: 0 }

function* knownEntries(table: SegmentTable): Generator<LogEntry> {
  const { removed, drops } = table
  let sum: Pick<LogEntry, 'packets' | 'bytes'> | undefined = removed
  for (const { port, lastNumber: number } of removed === undefined ? [] : table.ports) {
    const { startNs: minNs, endNs } = removed ?? NOTHING_REMOVED
    // The sum of all ports is written once; each port records its last number, from which its next segment gets its
    // own.
    const { packets, bytes } = sum ?? NOTHING_REMOVED
    sum = undefined
    const span = { minNs, maxNs: endNs - 1n }
    yield { ...NO_SEGMENT, kind: LogEntryKind.removedBefore, port, number, packets, bytes, ...span }
  }
  for (const port of table.ports) yield* entriesOf(port)
  if (drops !== undefined) {
    yield {
      ...NO_SEGMENT,
      kind: LogEntryKind.drops,
      port: 0,
      number: 0,
      packets: drops.ring,
      bytes: drops.disk,
    }
  }
  if (table.isClosed) {
    yield { ...NO_SEGMENT, kind: LogEntryKind.closed, port: 0, number: 0, packets: 0n, bytes: 0n }
  }
}
