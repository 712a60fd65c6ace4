/**
 * Which segments lie in a capture's folder, whatever its log says: for segments that are being written, and to make up
 * for what a damaged log no longer says.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type LogEntry, LogEntryKind, SegmentFlag } from '../../native/segment-entry.ts'
import { measureSegment, type SegmentExtent } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/base/error.ts'
import type { SegmentTable } from './segment-table.ts'
import { isGroupName, portFolder, portOfFolder, segmentOfFile, segmentPath } from './store-paths.ts'

export interface SegmentPlace {
  readonly number: number
  readonly isFlat: boolean
}

/** Ports that have a folder, ascending. Fails with store-unavailable. */
export async function portsOnDisk(captureFolder: string): Promise<readonly number[]> {
  const names = await namesIn(captureFolder)
  return names.flatMap((name) => portOfFolder(name) ?? []).sort((a, b) => a - b)
}

/** All segments of a port of which any file exists, ascending. Fails with store-unavailable. */
export async function segmentsOnDisk(captureFolder: string, port: number): Promise<readonly SegmentPlace[]> {
  const folder = portFolder(captureFolder, port)
  const names = await namesIn(folder)
  const places = new Map<number, SegmentPlace>()
  const add = (files: readonly string[], isFlat: boolean): void => {
    for (const number of files.flatMap((file) => segmentOfFile(file) ?? [])) {
      places.set(number, { number, isFlat })
    }
  }
  add(names, true)
  for (const group of names.filter(isGroupName)) add(await namesIn(join(folder, group)), false)
  return [...places.values()].sort((a, b) => a.number - b.number)
}

/**
 * Brings a table of a log that has damaged entries in line with the disk: segments that it lacks are measured and added,
 * those without files are forgotten. Segments after the last known one of an active capture are left to who looks at
 * growing ones. Returns what could not be mended, in words.
 */
export async function reconcileWithDisk(
  table: SegmentTable,
  captureFolder: string,
  { isActive }: { readonly isActive: boolean },
): Promise<readonly string[]> {
  const problems: string[] = []
  for (const port of new Set([...table.ports.map((one) => one.port), ...(await portsOnDisk(captureFolder))])) {
    const places = await segmentsOnDisk(captureFolder, port)
    const found = new Set(places.map(({ number }) => number))
    const known = table.portOf(port)
    const lastKnown = known?.lastNumber ?? 0
    for (let index = (known?.length ?? 0) - 1; index >= 0; index--) {
      const segment = known?.at(index)
      if (segment !== undefined && !found.has(segment.number)) table.forget(port, segment.number)
    }
    for (const place of places) {
      if (known?.find(place.number) !== undefined || (isActive && place.number > lastKnown)) continue
      try {
        const entry = await measuredEntry(captureFolder, port, place)
        if (entry !== undefined) table.apply(entry)
      } catch (error) {
        if (!(error instanceof CapfleetError)) throw error
        problems.push(error.message)
      }
    }
  }
  return problems
}

/**
 * What the log would say of a segment, by its files. undefined: it holds no packet, or is gone. Fails with store-corrupt
 * and store-unavailable.
 */
export async function measuredEntry(
  captureFolder: string,
  port: number,
  place: SegmentPlace,
): Promise<LogEntry | undefined> {
  const path = segmentPath(captureFolder, port, place)
  try {
    const extent = await measureSegment(path)
    if (extent.packets === 0n) return undefined
    return { ...entryOf(extent, { ...place, port }), sideBytes: await sideBytesOf(path) }
  } catch (error) {
    if (error instanceof CapfleetError && error.code === 'aged-out') return undefined
    throw error
  }
}

/** A finished segment's entry, but for what its other files take. */
export function entryOf(
  { linkType, snaplen, minNs, maxNs, packets, bytes }: Omit<SegmentExtent, 'port' | 'indexBytes'>,
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
  }
}

const SIDE_ENDINGS = ['.idx', '.tally', '.sieve'] as const

/** What index, tallies and sieves of a segment take; a file that is missing takes nothing. */
export async function sideBytesOf(path: string): Promise<number> {
  const sizes = await Promise.all(
    SIDE_ENDINGS.map((ending) =>
      stat(`${path}${ending}`).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** No names of a folder that is missing, or of what is no folder. Fails with store-unavailable. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    throw new CapfleetError('store-unavailable', `cannot read the store: ${String(error)}`, { cause: error })
  }
}
