/**
 * Reads the folder of a capture, even if some of its files are damaged: the record from either of its copies or,
 * without both, from the segments; the segments from the log or, where it is damaged, from the disk.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { LogEntryKind, SegmentFlag } from '../../native/segment-entry.ts'
import {
  type CaptureRecord,
  decodeLegacyRecord,
  decodeRecord,
  type LegacyRecord,
  type RevisedRecord,
} from './capture-record.ts'
import { type LogPosition, readSegmentLog } from './segment-log.ts'
import { SegmentTable } from './segment-table.ts'
import { reconcileWithDisk } from './segments-on-disk.ts'
import { CAPTURE_RECORD_NAME, portOfFolder, RECORD_COPY_NAME, SEGMENT_LOG_NAME } from './store-paths.ts'
import { entriesOf } from './stored-capture.ts'
import { isTemporary } from './temporary-errors.ts'

/** The end of a full name after its base name: the start in the device's zone, and a suffix that keeps it unique. */
export const FULL_NAME_ENDING = /_\d{8}_\d{4}(_\d+){0,2}$/

export interface ReadCapture {
  readonly record: CaptureRecord
  /** 0 if no copy of the record was readable. */
  readonly revision: number
  readonly table: SegmentTable
  /** How far the log was read; undefined: it is missing or unreadable. */
  readonly position: LogPosition | undefined
  /** 1: the record is of an old store and lists its segments itself, so that there is no log. */
  readonly format: 1 | 2
  /** Whether both copies of the record and every entry of the log are as they were written. */
  readonly isSound: boolean
  /** Descriptions of the problems. Most of the information was restored; the rest is lost. */
  readonly problems: readonly string[]
}

/**
 * Reads the folder; undefined: it is not a capture, or was removed. `isWritten`: a recorder may be writing to the log
 * at this moment, so that its last entry may be incomplete. Fails like reading the folder.
 */
export async function readCapture(
  folder: string,
  name: string,
  { isWritten }: { readonly isWritten: boolean },
): Promise<ReadCapture | undefined> {
  const [main, copy] = await Promise.all([
    readRecord(join(folder, CAPTURE_RECORD_NAME), name),
    readRecord(join(folder, RECORD_COPY_NAME), name),
  ])
  // A copy is only written beside a record of the current format.
  const other = 'legacy' in copy ? MISSING : copy
  if ('legacy' in main) return await legacyCapture(folder, main.legacy, other.record)
  const found = newerOf(main, other)
  if (found === undefined && main.isMissing && other.isMissing && !(await hasSegments(folder)))
    return undefined
  const problems = [main.problem, other.problem].flatMap((problem) => problem ?? [])
  const {
    table,
    position,
    isWhole,
    problems: lost,
  } = await readSegments(folder, {
    record: found,
    isWritten,
  })
  const { revision = 0, ...record } =
    found ?? (await rebuiltRecord(folder, name, { table, hasLog: position !== undefined }))
  return {
    record,
    revision,
    table,
    position,
    format: 2,
    isSound:
      problems.length === 0 &&
      lost.length === 0 &&
      isWhole &&
      position?.hasHeader === true &&
      !position.isTorn,
    problems: [...problems, ...lost],
  }
}

interface ReadRecord {
  readonly record?: RevisedRecord
  readonly isMissing: boolean
  readonly problem?: string
}
const MISSING: ReadRecord = { isMissing: true }

/** A record of another capture, copied here or renamed with its folder, says nothing about this one. */
async function readRecord(
  path: string,
  name: string,
): Promise<ReadRecord | { readonly legacy: LegacyRecord }> {
  const read = await readAnyRecord(path)
  const found = 'legacy' in read ? read.legacy : read.record
  if (found === undefined || found.name === name) return read
  return { isMissing: false, problem: `${path} is of another capture: ${found.name}` }
}

async function readAnyRecord(path: string): Promise<ReadRecord | { readonly legacy: LegacyRecord }> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return { isMissing: true, problem: `${path} is missing` }
    if (isTemporary(error)) throw error
    return { isMissing: false, problem: `${path} cannot be read: ${String(error)}` }
  }
  try {
    return { record: decodeRecord(text), isMissing: false }
  } catch (error) {
    try {
      return { legacy: decodeLegacyRecord(text) }
    } catch {
      return { isMissing: false, problem: `${path} is damaged: ${reasonOf(error)}` }
    }
  }
}

/** Errors of a schema take many lines. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'it is not JSON'
  return error instanceof Error && error.name === 'Error' ? error.message : 'it does not fit the format'
}

function newerOf({ record: main }: ReadRecord, { record: copy }: ReadRecord): RevisedRecord | undefined {
  if (main === undefined || copy === undefined) return main ?? copy
  return copy.revision > main.revision ? copy : main
}

async function readSegments(
  folder: string,
  { record, isWritten }: { readonly record: CaptureRecord | undefined; readonly isWritten: boolean },
): Promise<Pick<ReadCapture, 'table' | 'position' | 'problems'> & { readonly isWhole: boolean }> {
  const isActive = record?.state === 'active'
  const table = new SegmentTable()
  const path = join(folder, SEGMENT_LOG_NAME)
  const read = await readSegmentLog(path, table)
  const position = read === 'replaced' ? undefined : read
  // Nothing else records them.
  if (record?.type === 'capture' && position?.mayLackDrops !== false) table.noteLostDrops()
  // The log of a capture that has ended says so. One that does not was cut, or its recorder was killed just before.
  const hasEnd = record?.state !== 'closed' || table.isClosed
  const isWhole = position?.damagedEntries === 0 && hasEnd && (!position.isTorn || (isActive && isWritten))
  if (isWhole) {
    const problems = position.hasHeader ? [] : [`${path}: the header is damaged; no entry is`]
    return { table, position, isWhole, problems }
  }
  const hasAllEntries = position?.damagedEntries === 0
  const lost = await reconcileWithDisk(table, folder, {
    isActive: isActive && position !== undefined,
    hasAllEntries,
    // In a capture that has ended, an incomplete entry is not just being written.
    mayLackMarks: !hasAllEntries || !isActive,
    recorded: record && { startNs: record.startNs, endNs: isActive ? undefined : record.endNs },
  })
  // A power failure may cut the last entry: then its information is still on the disk, and nothing is damaged.
  if (hasAllEntries && position.hasHeader) return { table, position, isWhole, problems: lost }
  const damage =
    position === undefined ? `${path} is missing or damaged` : `${path}: ${damagedParts(position)} damaged`
  return {
    table,
    position,
    isWhole,
    problems: [`${damage}; the segments were read from the disk`, ...lost],
  }
}

function damagedParts({ hasHeader, damagedEntries }: LogPosition): string {
  if (hasHeader) return `${damagedEntries} entries are`
  return damagedEntries === 0 ? 'the header is' : `the header and ${damagedEntries} entries are`
}

async function hasSegments(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => [])
  return names.some((name) => name === SEGMENT_LOG_NAME || portOfFolder(name) !== undefined)
}

/** A record for a capture of which only segments are readable. */
async function rebuiltRecord(
  folder: string,
  name: string,
  { table, hasLog }: { readonly table: SegmentTable; readonly hasLog: boolean },
): Promise<CaptureRecord & { readonly revision?: number }> {
  const { birthtime } = await stat(folder)
  const isRecorded = FULL_NAME_ENDING.test(name)
  const times = table.ports.flatMap(({ minNs, maxNs }) =>
    minNs === undefined || maxNs === undefined ? [] : [minNs, maxNs + 1n],
  )
  const least = times.reduce<bigint>((a, b) => (b < a ? b : a), times[0] ?? 0n)
  const most = times.reduce<bigint>((a, b) => (b > a ? b : a), 0n)
  return recordOfSegments(name, {
    // Without the log this is not known, and a stopped capture must not be resumed.
    state: isRecorded && hasLog && !table.isClosed ? 'active' : 'closed',
    createdAt: birthtime,
    startNs: least,
    endNs: most,
  })
}

/** A record with what is known without it. */
export function recordOfSegments(
  name: string,
  known: Pick<CaptureRecord, 'state' | 'startNs' | 'endNs'> & { readonly createdAt: Date },
): CaptureRecord {
  const isRecorded = FULL_NAME_ENDING.test(name)
  return {
    ...known,
    name,
    type: isRecorded ? 'capture' : 'import',
    description: 'The record of this capture was damaged; this one was rebuilt from its segments.',
    ...(isRecorded ? { baseName: name.replace(FULL_NAME_ENDING, '') } : {}),
    createdAt: known.createdAt.toISOString(),
    sources: [],
    packetsOutOfTimeRange: 0n,
    damages: [],
  }
}

/**
 * A capture whose record is of format 1. With a log beside it, its upgrade was interrupted, or a backup of the record
 * was restored: the log counts, and the segments that only the record lists are added.
 */
async function legacyCapture(
  folder: string,
  legacy: LegacyRecord,
  copy: RevisedRecord | undefined,
): Promise<ReadCapture> {
  const { record, table } = ofFormat1(legacy)
  const logged = new SegmentTable()
  const position = await readSegmentLog(join(folder, SEGMENT_LOG_NAME), logged)
  if (position === undefined || position === 'replaced') {
    return { record, revision: 0, table, position: undefined, format: 1, isSound: true, problems: [] }
  }
  const lastOf = (of: SegmentTable, port: number): number => of.portOf(port)?.lastNumber ?? 0
  const isOlder = logged.ports.some(({ port, lastNumber }) => lastNumber > lastOf(table, port))
  const mayLackEntries = position.damagedEntries > 0
  for (const port of table.ports) {
    const lastLogged = lastOf(logged, port.port)
    for (const segment of entriesOf(port)) {
      const isLogged = logged.portOf(port.port)?.find(segment.number) !== undefined
      if (segment.number > lastLogged || (mayLackEntries && !isLogged)) logged.apply(segment)
    }
  }
  const { revision, ...facts } = copy ?? { ...record, revision: 0 }
  return {
    record: facts,
    revision,
    table: logged,
    position,
    format: 2,
    isSound: false,
    problems: isOlder
      ? [
          `${join(folder, CAPTURE_RECORD_NAME)} is of format 1 and older than the log, which lists more segments`,
        ]
      : [],
  }
}

/** The contents of a record of format 1. */
function ofFormat1({
  format: _format,
  streams,
  removed,
  drops,
  packets: _packets,
  bytes: _bytes,
  ...record
}: LegacyRecord): Pick<ReadCapture, 'record' | 'table'> {
  const table = new SegmentTable()
  const base = { linkType: 0, snaplen: 0, sideBytes: 0, checksum: 0, flags: SegmentFlag.flat }
  for (const { port, linkType, snaplen, segments } of streams) {
    for (const segment of segments) {
      table.apply({ ...base, ...segment, kind: LogEntryKind.finished, port, linkType, snaplen })
    }
  }
  for (const [index, { port, number }] of (removed?.segments ?? []).entries()) {
    const { packets, bytes, startNs, endNs } = removed ?? NOTHING_REMOVED
    // The first entry has the sum of all ports; the others only say up to which number their ports go.
    const sum = index === 0 ? { packets, bytes } : { packets: 0n, bytes: 0n }
    table.apply({
      ...base,
      ...sum,
      kind: LogEntryKind.removedBefore,
      port,
      number,
      minNs: startNs,
      maxNs: endNs - 1n,
    })
  }
  if (drops !== undefined) {
    const { ring: packets, disk: bytes } = drops
    table.apply({
      ...base,
      kind: LogEntryKind.drops,
      port: 0,
      number: 0,
      minNs: 0n,
      maxNs: 0n,
      packets,
      bytes,
    })
  }
  return { record, table }
}

const NOTHING_REMOVED = { packets: 0n, bytes: 0n, startNs: 0n, endNs: 1n }
