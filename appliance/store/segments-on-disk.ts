/**
 * Which segments are in a capture's folder, whatever its log says: for segments that are being written, and to restore
 * what a damaged log no longer says.
 */
import type { Dirent } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type LogEntry, LogEntryKind, SegmentFlag } from '../../native/segment-entry.ts'
import { measureFinishedSegment, type SegmentExtent } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { PCAP_HEADER_BYTES } from '../../src/shared/pcap/pcap-sizes.ts'
import type { PortSegments } from './port-segments.ts'
import type { SegmentTable } from './segment-table.ts'
import {
  groupName,
  isGroupName,
  portFolder,
  portOfFolder,
  segmentOfFile,
  segmentPath,
} from './store-paths.ts'

const INDEX_HEADER_BYTES = 64
const NANOS_PER_MS = 1_000_000n

export interface SegmentPlace {
  readonly number: number
  readonly isFlat: boolean
}

/** Ports that have a folder, ascending. Fails with store-unavailable. */
export async function portsOnDisk(captureFolder: string): Promise<readonly number[]> {
  const entries = await entriesIn(captureFolder)
  return entries
    .flatMap((entry) => (entry.isFile() ? [] : (portOfFolder(entry.name) ?? [])))
    .sort((a, b) => a - b)
}

/**
 * The segments of a port with numbers above `afterNumber` of which any file exists, ascending. Fails with
 * store-unavailable.
 */
export async function segmentsOnDisk(
  captureFolder: string,
  port: number,
  afterNumber = 0,
): Promise<readonly SegmentPlace[]> {
  const folder = portFolder(captureFolder, port)
  const names = (await entriesIn(folder)).map(({ name }) => name)
  const places = new Map<number, SegmentPlace>()
  const add = (files: readonly string[], isFlat: boolean): void => {
    for (const number of files.flatMap((file) => segmentOfFile(file) ?? [])) {
      if (number > afterNumber) places.set(number, { number, isFlat })
    }
  }
  add(names, true)
  const firstGroup = groupName(afterNumber + 1)
  for (const group of names.filter((name) => isGroupName(name) && name >= firstGroup)) {
    add(
      (await entriesIn(join(folder, group))).map(({ name }) => name),
      false,
    )
  }
  return [...places.values()].sort((a, b) => a.number - b.number)
}

/** Facts that are known in addition to the table. */
interface LogKnowledge {
  readonly isActive: boolean
  /** Every entry of the log was read, except perhaps the last one. */
  readonly hasAllEntries: boolean
  /** A lost entry may have said that packets of a known segment are lost. */
  readonly mayLackMarks: boolean
  /**
   * [startNs, endNs) contained the packets, according to the record of the capture; without endNs, it was recording when
   * the record was written.
   */
  readonly recorded: { readonly startNs: bigint; readonly endNs?: bigint | undefined } | undefined
}

/**
 * Reconciles the table of a log that has damaged entries with the disk: segments that it lacks are measured and added.
 * A segment without files at the front of its port was removed and is dropped; any other segment that cannot be
 * measured stays as a damaged one between the times of its neighbours. Segments after the last known one of an active
 * capture are left to the reader of growing segments. Returns descriptions of the losses.
 */
export async function reconcileWithDisk(
  table: SegmentTable,
  captureFolder: string,
  knowledge: LogKnowledge,
): Promise<readonly string[]> {
  const problems: string[] = []
  const known = table.ports.map(({ port }) => port)
  for (const port of new Set([...known, ...(await portsOnDisk(captureFolder))])) {
    problems.push(...(await reconcilePort(table, captureFolder, { port, ...knowledge })))
  }
  return problems
}

async function reconcilePort(
  table: SegmentTable,
  captureFolder: string,
  { port, isActive, hasAllEntries, mayLackMarks, recorded }: LogKnowledge & { readonly port: number },
): Promise<readonly string[]> {
  const problems: string[] = []
  const lastKnown = table.portOf(port)?.lastNumber ?? 0
  const places = (await segmentsOnDisk(captureFolder, port)).filter(({ number }) =>
    number > lastKnown ? !isActive : !isRemoved(number),
  )
  /** The log has its removal; its files may still exist. */
  function isRemoved(number: number): boolean {
    return hasAllEntries && table.portOf(port)?.find(number) === undefined
  }
  const firstOnDisk = places[0]?.number ?? Number.POSITIVE_INFINITY
  for (let oldest = table.portOf(port)?.oldest; oldest !== undefined && oldest.number < firstOnDisk; ) {
    table.forget(port, oldest.number)
    oldest = table.portOf(port)?.oldest
  }
  const missing = new Map(missingNumbers(table.portOf(port), places).map((place) => [place.number, place]))
  for (const place of [...places, ...missing.values()]) {
    const known = table.portOf(port)?.find(place.number)
    if (known !== undefined && (!mayLackMarks || isMarked(known))) continue
    const found = await measuredUnlessDamaged(captureFolder, port, place)
    if (known !== undefined) {
      if (typeof found === 'string' || found === undefined || !isMarked(found)) continue
      problems.push(`segment ${place.number} of port ${port} has blocks that are marked as damaged`)
      table.apply({ ...known, flags: known.flags | SegmentFlag.damaged, packets: found.packets })
    } else if (typeof found === 'string') {
      problems.push(found)
      table.apply(await damagedEntry(captureFolder, table.portOf(port), { ...place, port, recorded }))
    } else if (found !== undefined) {
      if (found.packets === 0n) problems.push(packetless(segmentPath(captureFolder, port, place)).message)
      table.apply(fromItsEarliest(found, table.portOf(port), recorded))
    } else if (missing.has(place.number) || (await hadPackets(captureFolder, port, place))) {
      problems.push(`segment ${place.number} of port ${port} is missing`)
      table.apply(await damagedEntry(captureFolder, table.portOf(port), { ...place, port, recorded }))
    }
  }
  return problems
}

function isMarked({ flags }: LogEntry): boolean {
  return (flags & SegmentFlag.damaged) !== 0
}

/**
 * Whether a segment without packets has an index of some. A segment that is being removed is briefly in this state; if
 * the log no longer says so, it counts as lost.
 */
async function hadPackets(captureFolder: string, port: number, place: SegmentPlace): Promise<boolean> {
  return (await sizeOfFile(`${segmentPath(captureFolder, port, place)}.idx`)) > INDEX_HEADER_BYTES
}

/** No segment between the first and the last is ever left out: a missing one was lost. */
function missingNumbers(
  known: PortSegments | undefined,
  places: readonly SegmentPlace[],
): readonly SegmentPlace[] {
  const found = new Set(places.map(({ number }) => number))
  const first = Math.min(known?.oldest?.number ?? Number.POSITIVE_INFINITY, places[0]?.number ?? 1)
  const last = Math.max(known?.newest?.number ?? 0, places.at(-1)?.number ?? 0)
  const missing: SegmentPlace[] = []
  for (let number = first + 1; number < last; number++) {
    if (!found.has(number) && known?.find(number) === undefined) missing.push({ number, isFlat: false })
  }
  return missing
}

/** Its first block may be lost, and may begin as early as the end of the previous segment. */
function fromItsEarliest(
  found: LogEntry,
  known: PortSegments | undefined,
  recorded: LogKnowledge['recorded'],
): LogEntry {
  const earliestNs = known?.before(found.number)?.maxNs ?? recorded?.startNs ?? found.minNs
  return isMarked(found) && earliestNs < found.minNs ? { ...found, minNs: earliestNs } : found
}

/**
 * The entry of a segment about which only its order is known: it was recorded after the previous one and before the next
 * one, or else before its file was last written.
 */
export async function damagedEntry(
  captureFolder: string,
  known: PortSegments | undefined,
  {
    port,
    number,
    isFlat,
    recorded,
  }: SegmentPlace & Pick<LogKnowledge, 'recorded'> & { readonly port: number },
): Promise<LogEntry> {
  const after = known?.after(number)
  const before = known?.before(number)
  const minNs = before?.maxNs ?? recorded?.startNs ?? after?.minNs ?? 0n
  const lastNs = recorded?.endNs === undefined ? undefined : recorded.endNs - 1n
  const maxNs =
    after?.minNs ?? lastNs ?? (await lastWriteNs(segmentPath(captureFolder, port, { number, isFlat })))
  const { linkType = 1, snaplen = 0 } = before ?? after ?? {}
  return {
    kind: LogEntryKind.finished,
    port,
    flags: SegmentFlag.damaged | (isFlat ? SegmentFlag.flat : 0),
    number,
    minNs: minNs < maxNs ? minNs : maxNs,
    maxNs: minNs < maxNs ? maxNs : minNs,
    packets: 0n,
    bytes: 0n,
    linkType,
    snaplen,
    sideBytes: 0,
    checksum: 0,
  }
}

async function lastWriteNs(path: string): Promise<bigint> {
  return await stat(`${path}.pcap`, { bigint: true }).then(
    ({ mtimeNs }) => mtimeNs,
    () => BigInt(Date.now()) * NANOS_PER_MS,
  )
}

/** A text describes what is wrong with the segment. */
export async function measuredUnlessDamaged(
  captureFolder: string,
  port: number,
  place: SegmentPlace,
): Promise<LogEntry | string | undefined> {
  try {
    return await measuredEntry(captureFolder, port, place)
  } catch (error) {
    if (!(error instanceof CapfleetError)) throw error
    return error.message
  }
}

/**
 * The log entry of a segment that its writer has ended, reconstructed from its files. undefined: it holds no packet, or
 * is gone. Fails with store-corrupt and store-unavailable.
 */
export async function measuredEntry(
  captureFolder: string,
  port: number,
  place: SegmentPlace,
): Promise<LogEntry | undefined> {
  const path = segmentPath(captureFolder, port, place)
  if ((await sizeOfFile(`${path}.pcap`)) <= PCAP_HEADER_BYTES) return undefined
  try {
    const extent = await measureFinishedSegment(path)
    // Marked blocks keep their times.
    if (extent.packets === 0n && extent.minNs > extent.maxNs) throw packetless(path)
    const entry = entryOf(extent, { ...place, port })
    const flags = entry.flags | (extent.damagedBlocks > 0n ? SegmentFlag.damaged : 0)
    return { ...entry, flags, sideBytes: await sideBytesOf(path) }
  } catch (error) {
    if (error instanceof CapfleetError && error.code === 'aged-out') return undefined
    throw error
  }
}

function packetless(path: string): CapfleetError {
  return new CapfleetError('store-corrupt', `${path}.pcap has data, but no readable packet`)
}

/** A finished segment's entry, except for the sizes of its other files. */
export function entryOf(
  { linkType, snaplen, minNs, maxNs, packets, bytes, checksum }: Omit<SegmentExtent, 'port' | 'indexBytes'>,
  { port, number, isFlat }: SegmentPlace & { readonly port: number },
): LogEntry {
  const flags = isFlat ? SegmentFlag.flat : 0
  return {
    kind: LogEntryKind.finished,
    port,
    flags,
    number,
    minNs,
    maxNs,
    packets,
    bytes,
    linkType,
    snaplen,
    sideBytes: 0,
    checksum,
  }
}

/** Sizes of the files beside the packets of a segment. */
const SIDE_ENDINGS = ['.idx', '.tally', '.sieve'] as const

/** The sizes of a segment's index, tallies and sieves; a missing file has none. */
export async function sideBytesOf(path: string): Promise<number> {
  const sizes = await Promise.all(SIDE_ENDINGS.map((ending) => sizeOfFile(`${path}${ending}`)))
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** 0 for a missing file. */
export async function sizeOfFile(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  )
}

/** Nothing if the folder is missing or is not a folder. Fails with store-unavailable. */
export async function entriesIn(folder: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    throw new CapfleetError('store-unavailable', `cannot read the store: ${String(error)}`, { cause: error })
  }
}
