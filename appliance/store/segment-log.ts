/**
 * Reads segments.log, the append-only record of a capture's segments (native/FORMAT.md). Only the recorder writes it;
 * readers remember their position and read only what is new.
 */
import { randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import {
  checkLogEntries,
  EntryState,
  LOG_ENTRY_BYTES,
  LOG_HEADER_BYTES,
  type LogEntry,
  LogEntryKind,
  readLogEntry,
} from '../../native/segment-entry.ts'
import type { SegmentTable } from './segment-table.ts'
import { isTemporary } from './temporary-errors.ts'

const MAGIC = Buffer.from('CFSEGLOG')
const VERSION = 1

/** How far a log has been read. */
export interface LogPosition {
  /** Inode and random id of the file: a log that was rewritten may get the inode of an earlier one. */
  readonly identity: string
  /** Offset of the entry after the last one. */
  readonly end: number
  /** False: the header is damaged. Nothing is lost with it. */
  readonly hasHeader: boolean
  /** Entries that cannot be read. Their information must be found on the disk. */
  readonly damagedEntries: number
  /** The last of these that may have recorded drops is followed by no entry of the current number. */
  readonly mayLackDrops: boolean
  /** The last entry is incomplete: it is just being written, or was cut by a power failure or damage. */
  readonly isTorn: boolean
}

/** Offset and size of the id in the header. Logs of earlier versions have zeros. */
const ID = { from: 16, bytes: 16 } as const

/** The header of a new log, without its checksum. */
export function logHeader(): Buffer {
  const header = Buffer.alloc(LOG_HEADER_BYTES)
  MAGIC.copy(header)
  header.writeUInt32LE(VERSION, 8)
  header.writeUInt32LE(LOG_ENTRY_BYTES, 12)
  randomBytes(ID.bytes).copy(header, ID.from)
  return header
}

/**
 * Adds the entries after `from` to the table. Returns 'replaced', without adding any, if `from` is of another file: the
 * caller must start again with an empty table. Returns undefined if there is no log, if none of it is readable, or if
 * its version is unknown. Fails only with temporary errors.
 */
export async function readSegmentLog(
  path: string,
  table: SegmentTable,
  from?: LogPosition,
): Promise<LogPosition | 'replaced' | undefined> {
  try {
    return await readEntries(path, table, from)
  } catch (error) {
    // A log that the disk does not return is as lost as a missing one.
    if (isTemporary(error)) throw error
    return undefined
  }
}

async function readEntries(
  path: string,
  table: SegmentTable,
  from: LogPosition | undefined,
): Promise<LogPosition | 'replaced' | undefined> {
  await using file = await open(path, 'r')
  const { ino, size } = await file.stat({ bigint: true })
  const read = async (start: number, end: number): Promise<Buffer> => {
    const bytes = Buffer.alloc(Math.max(0, end - start))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, start)
    return bytes.subarray(0, bytesRead)
  }
  const start = from?.end ?? LOG_HEADER_BYTES
  const headerBytes = await read(0, LOG_HEADER_BYTES)
  const identity = `${ino} ${headerBytes.toString('hex', ID.from, ID.from + ID.bytes)}`
  if (from !== undefined && from.identity !== identity) return 'replaced'
  const entries = await read(start, Number(size))
  if (from !== undefined) {
    const { length, damaged, mayLackDrops, isTorn } = takeEntries(entries, start, table)
    return {
      identity,
      end: start + length,
      hasHeader: from.hasHeader,
      damagedEntries: from.damagedEntries + damaged,
      mayLackDrops,
      isTorn,
    }
  }
  const header = headerState(headerBytes)
  if (header === 'of another version') return undefined
  const { length, damaged, mayLackDrops, isTorn } = takeEntries(entries, start, table)
  // An entry is valid only where it was written, in a log of this version.
  if (header === 'damaged' && length === 0) return undefined
  return {
    identity,
    end: LOG_HEADER_BYTES + length,
    hasHeader: header === 'whole',
    damagedEntries: damaged,
    mayLackDrops,
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
): {
  readonly length: number
  readonly damaged: number
  readonly mayLackDrops: boolean
  readonly isTorn: boolean
} {
  const states = checkLogEntries(bytes, fileOffset)
  const count = states.lastIndexOf(EntryState.undamaged) + 1
  let damaged = 0
  let mayLackDrops = false
  for (let index = 0; index < count; index++) {
    const entry = readLogEntry(bytes, index * LOG_ENTRY_BYTES)
    if (states[index] !== EntryState.undamaged) {
      damaged += 1
      mayLackDrops ||= mayBeDrops(entry)
      continue
    }
    table.apply(entry)
    // Each entry of drops has the sum so far.
    if (entry.kind === LogEntryKind.drops) mayLackDrops = false
  }
  const isTorn = bytes.length % LOG_ENTRY_BYTES !== 0 || states.includes(EntryState.damaged, count)
  return { length: count * LOG_ENTRY_BYTES, damaged, mayLackDrops, isTorn }
}

/** What is left of a damaged entry. Only entries of drops, and those that a capture has ended, are of no segment. */
function mayBeDrops({ kind, number, packets, bytes }: LogEntry): boolean {
  if (kind === LogEntryKind.drops) return true
  return number === 0 && !(kind === LogEntryKind.closed && packets === 0n && bytes === 0n)
}
