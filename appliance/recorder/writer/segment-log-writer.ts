/** Writes segments.log (native/FORMAT.md): entries are appended durably into preallocated space. */
import { type FileHandle, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  LOG_ENTRY_BYTES,
  LOG_HEADER_BYTES,
  type LogEntry,
  LogEntryKind,
  packLogEntries,
  SegmentFlag,
  sealLogEntries,
} from '../../../native/segment-entry.ts'
import { syncPath } from '../../../src/shared/base/durable-files.ts'
import { logHeader } from '../../store/segment-log.ts'
import type { Drops, SegmentTable } from '../../store/segment-table.ts'
import { entriesOf } from '../../store/stored-capture.ts'
import { replaceFile } from './move-aside.ts'

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
  /** The file; undefined = the log must be rewritten, because it may contain entries that were never confirmed. */
  #file: LogFile | undefined

  private constructor(path: string, end: number, file: LogFile | undefined) {
    this.#path = path
    this.#end = end
    this.#file = file
  }

  /** Creates the log of a new capture, in a folder that the caller syncs. Fails with disk errors. */
  static async create(path: string, table: SegmentTable): Promise<SegmentLogWriter> {
    const { bytes, end } = contentOf(table, [])
    await using file = await open(path, 'w', 0o640)
    await file.writeFile(bytes)
    return new SegmentLogWriter(path, end, await logFileOf(file))
  }

  /** Continues a log that was read up to `end`. `mustRewrite`: it is damaged, or missing. */
  static async continue(
    path: string,
    { end, mustRewrite }: { readonly end: number; readonly mustRewrite: boolean },
  ): Promise<SegmentLogWriter> {
    if (mustRewrite) return new SegmentLogWriter(path, end, undefined)
    await using file = await open(path, 'r')
    // An interrupted write may have left bytes where the next entries go; they are overwritten.
    return new SegmentLogWriter(path, end, await logFileOf(file))
  }

  /**
   * Appends the entries durably, then applies them to the table, which reflects the log. After a failure nothing is
   * applied, and the call can be repeated with the same or other entries.
   */
  async append(entries: readonly LogEntry[], table: SegmentTable): Promise<void> {
    if (this.#hasMany(table) || !(await this.#write(entries))) await this.rewrite(table, entries)
    for (const entry of entries) table.apply(entry)
  }

  /** Replaces the log by one with the contents of the table plus these entries. */
  async rewrite(table: SegmentTable, entries: readonly LogEntry[] = []): Promise<void> {
    const { bytes, end } = contentOf(table, entries)
    const next = `${this.#path}.next`
    let written: LogFile
    try {
      await using file = await open(next, 'w', 0o640)
      await file.writeFile(bytes)
      await file.sync()
      written = await logFileOf(file)
      await replaceFile(next, this.#path)
    } catch (error) {
      await rm(next, { force: true }).catch(() => undefined)
      throw error
    }
    this.#file = undefined
    await syncPath(dirname(this.#path))
    this.#file = written
    this.#end = end
  }

  #hasMany(table: SegmentTable): boolean {
    const count = (this.#end - LOG_HEADER_BYTES) / LOG_ENTRY_BYTES
    return count > ENTRIES_MAX && count > 2 * table.segments
  }

  /** Returns false if the log is not the file that was last written: somebody has removed, replaced or cut it. */
  async #write(entries: readonly LogEntry[]): Promise<boolean> {
    const known = this.#file
    if (known === undefined) return false
    const bytes = packLogEntries(entries)
    sealLogEntries(bytes, this.#end)
    const end = this.#end + bytes.length
    await using file = await openUnlessMissing(this.#path)
    if (file === undefined) return false
    const { inode, size } = await logFileOf(file)
    if (inode !== known.inode || size < known.size) return false
    const made = await makeRoom(file, { end, size: known.size })
    this.#file = undefined
    // A reader may see the entries before they are durable: if they fail to become so, it must find a different file.
    await writeAll(file, bytes, this.#end)
    await file.datasync()
    this.#file = { inode, size: made }
    this.#end = end
    return true
  }
}

interface LogFile {
  readonly inode: bigint
  readonly size: number
}

async function logFileOf(file: FileHandle): Promise<LogFile> {
  const { ino, size } = await file.stat({ bigint: true })
  return { inode: ino, size: Number(size) }
}

async function openUnlessMissing(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r+')
  } catch (error) {
    if (LOST.has((error as NodeJS.ErrnoException).code)) return undefined
    throw error
  }
}

/** Nothing has this name, or a folder has. */
const LOST: ReadonlySet<unknown> = new Set(['ENOENT', 'EISDIR'])

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
const NO_SEGMENT = { flags: 0, minNs: 0n, maxNs: 0n, linkType: 0, snaplen: 0, sideBytes: 0, checksum: 0 }

/** An entry of the drops so far; marked if earlier ones are not known. */
export function dropsEntry({ ring, disk }: Drops, { mayLackDrops }: SegmentTable): LogEntry {
  const flags = mayLackDrops ? SegmentFlag.damaged : 0
  return {
    ...NO_SEGMENT,
    kind: LogEntryKind.drops,
    flags,
    port: 0,
    number: 0,
    packets: ring,
    bytes: disk,
  }
}

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
  if (drops !== undefined || table.mayLackDrops) yield dropsEntry(drops ?? { ring: 0n, disk: 0n }, table)
  if (table.isClosed) {
    yield { ...NO_SEGMENT, kind: LogEntryKind.closed, port: 0, number: 0, packets: 0n, bytes: 0n }
  }
}
