/**
 * Reads segments.log, the append-only record of a capture's segments (native/FORMAT.md). Only the recorder writes it;
 * readers remember their position and read only what is new.
 */
import { type FileHandle, open } from 'node:fs/promises'
import {
  checkLogEntries,
  EntryState,
  LOG_ENTRY_BYTES,
  LOG_HEADER_BYTES,
  readLogEntry,
} from '../../native/segment-entry.ts'
import type { SegmentTable } from './segment-table.ts'

const MAGIC = Buffer.from('CFSEGLOG')
const VERSION = 1

/** How far a log has been read. */
export interface LogPosition {
  /** Identity of the file: compacting creates a new one. */
  readonly inode: bigint
  /** Offset of the entry after the last one. */
  readonly end: number
  /** False: the header is damaged. It is the same in every log, so nothing is lost with it. */
  readonly hasHeader: boolean
  /** Entries that cannot be read. Their information must be found on the disk. */
  readonly damagedEntries: number
  /** The last entry is incomplete: it is just being written, or was cut by a power failure or damage. */
  readonly isTorn: boolean
}

/** The header of a new log, without its checksum. */
export function logHeader(): Buffer {
  const header = Buffer.alloc(LOG_HEADER_BYTES)
  MAGIC.copy(header)
  header.writeUInt32LE(VERSION, 8)
  header.writeUInt32LE(LOG_ENTRY_BYTES, 12)
  return header
}

/**
 * Adds the entries after `from` to the table. Returns 'replaced', without adding any, if `from` is of another file: the
 * caller must start again with an empty table. Returns undefined if there is no log, if none of it is readable, or if
 * its version is unknown.
 */
export async function readSegmentLog(
  path: string,
  table: SegmentTable,
  from?: LogPosition,
): Promise<LogPosition | 'replaced' | undefined> {
  await using file = await openUnlessMissing(path)
  if (file === undefined) return undefined
  const { ino, size } = await file.stat({ bigint: true })
  if (from !== undefined && from.inode !== ino) return 'replaced'
  const start = from?.end ?? 0
  const bytes = Buffer.alloc(Math.max(0, Number(size) - start))
  const { bytesRead } = await file.read(bytes, 0, bytes.length, start)
  const read = bytes.subarray(0, bytesRead)
  if (from !== undefined) {
    const { length, damaged, isTorn } = takeEntries(read, start, table)
    return {
      inode: ino,
      end: start + length,
      hasHeader: from.hasHeader,
      damagedEntries: from.damagedEntries + damaged,
      isTorn,
    }
  }
  const header = headerState(read)
  if (header === 'of another version') return undefined
  const { length, damaged, isTorn } = takeEntries(read.subarray(LOG_HEADER_BYTES), LOG_HEADER_BYTES, table)
  // An entry is valid only where it was written, in a log of this version.
  if (header === 'damaged' && length === 0) return undefined
  return {
    inode: ino,
    end: LOG_HEADER_BYTES + length,
    hasHeader: header === 'whole',
    damagedEntries: damaged,
    isTorn,
  }
}

function headerState(bytes: Buffer): 'whole' | 'damaged' | 'of another version' {
  if (bytes.length < LOG_HEADER_BYTES) return 'damaged'
  const [state] = checkLogEntries(bytes.subarray(0, LOG_HEADER_BYTES), 0)
  if (state !== EntryState.undamaged) return 'damaged'
  const isOurs = bytes.subarray(0, MAGIC.length).equals(MAGIC) && bytes.readUInt32LE(8) === VERSION
  return isOurs ? 'whole' : 'of another version'
}

/**
 * The log ends with its last undamaged entry. The rest is reserved space, or an entry that is just being written and
 * will be complete at the next read.
 */
function takeEntries(
  bytes: Buffer,
  fileOffset: number,
  table: SegmentTable,
): { readonly length: number; readonly damaged: number; readonly isTorn: boolean } {
  const states = checkLogEntries(bytes, fileOffset)
  const count = states.lastIndexOf(EntryState.undamaged) + 1
  let damaged = 0
  for (let index = 0; index < count; index++) {
    if (states[index] === EntryState.undamaged) table.apply(readLogEntry(bytes, index * LOG_ENTRY_BYTES))
    else damaged += 1
  }
  const isTorn = bytes.length % LOG_ENTRY_BYTES !== 0 || states.includes(EntryState.damaged, count)
  return { length: count * LOG_ENTRY_BYTES, damaged, isTorn }
}

async function openUnlessMissing(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
