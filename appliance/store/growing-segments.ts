import { type LogEntry, SegmentFlag } from '../../native/segment-entry.ts'
import { measureSegment, type SegmentExtent } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { PortSegments } from './port-segments.ts'
import type { SegmentTable } from './segment-table.ts'
import {
  damagedEntry,
  entryOf,
  portsOnDisk,
  type SegmentPlace,
  segmentsOnDisk,
  sizeOfFile,
} from './segments-on-disk.ts'
import { segmentPath } from './store-paths.ts'
import { isTemporary } from './temporary-errors.ts'

/** Size of an index with one entry. */
const FIRST_ENTRY_END = 128
/** A writer that abandoned a segment may leave its number unused. */
const MISSING_MAX = 2

/** An active capture whose log has been read into the table. */
interface ActiveCapture {
  readonly table: SegmentTable
  readonly folder: string
  readonly startNs: bigint
}

/**
 * The segments of one active capture that its log does not list yet: those numbered after its last entry. Their indexes
 * say how far they are flushed; each read continues where the last one ended.
 */
export class GrowingSegments {
  /** Extents by path. */
  #known = new Map<string, SegmentExtent>()
  /**
   * The segments that the disk held when the capture was first read, by port. If the log has been cut, any number of
   * removed segments may be missing before them.
   */
  readonly #listed = new Map<number, readonly number[]>()

  /**
   * All segments that hold a packet. One that cannot be read is a damaged segment between the times of its neighbours;
   * if a folder cannot be listed, so is the next segment of its port.
   */
  async measure(capture: ActiveCapture): Promise<readonly LogEntry[]> {
    const seen = new Map<string, SegmentExtent>()
    const growing: LogEntry[] = []
    for (const port of await portsOf(capture)) growing.push(...(await this.#measurePort(capture, port, seen)))
    this.#known = seen
    return growing
  }

  async #measurePort(
    capture: ActiveCapture,
    port: number,
    seen: Map<string, SegmentExtent>,
  ): Promise<readonly LogEntry[]> {
    const { table, folder, startNs } = capture
    const logged = table.portOf(port)
    const last = logged?.lastNumber ?? 0
    const growing = new PortSegments(port)
    if (logged?.newest !== undefined) growing.put(logged.newest)
    const unreadable: SegmentPlace[] = []
    const read = async (number: number): Promise<boolean> => {
      const found = await this.#find(folder, port, number)
      if (found === undefined) return false
      const { path, extent, isFlat } = found
      if (extent === undefined) unreadable.push({ number, isFlat })
      else seen.set(path, extent)
      if (extent !== undefined && extent.packets > 0n) {
        const entry = entryOf(extent, { port, number, isFlat })
        growing.put({ ...entry, flags: entry.flags | SegmentFlag.growing })
      }
      return true
    }
    const listed = await this.#listedAfter(capture, port, last)
    if (listed === undefined) unreadable.push({ number: last + 1, isFlat: false })
    for (const number of listed ?? []) await read(number)
    const first = Math.max(last, listed?.at(-1) ?? 0) + 1
    for (let number = first, missing = 0; missing < MISSING_MAX; number++) {
      missing = (await read(number)) ? 0 : missing + 1
    }
    // Now that the times of their neighbours are known.
    for (const place of unreadable) {
      const entry = await damagedEntry(folder, growing, { ...place, port, recorded: { startNs } })
      // Downloads read the packets without the index, or count the blocks that they cannot read.
      const bytes = await sizeOfFile(`${segmentPath(folder, port, place)}.pcap`)
      growing.put({ ...entry, bytes: BigInt(bytes) })
    }
    return [...entriesAfter(growing, last)]
  }

  /** undefined: the folder cannot be listed. */
  async #listedAfter(
    { folder }: ActiveCapture,
    port: number,
    last: number,
  ): Promise<readonly number[] | undefined> {
    let listed = this.#listed.get(port)
    if (listed === undefined) {
      const places = await unlessUnreadable(segmentsOnDisk(folder, port, last))
      if (places === undefined) return undefined
      listed = places.map(({ number }) => number)
      this.#listed.set(port, listed)
    }
    return listed.filter((number) => number > last)
  }

  /** Where writers put segments today, or where they did in stores of format 1. No extent: it cannot be read. */
  async #find(captureFolder: string, port: number, number: number) {
    for (const isFlat of [false, true]) {
      const path = segmentPath(captureFolder, port, { number, isFlat })
      try {
        const extent = await measureSegment(path, this.#known.get(path))
        // An index with entries of which none is readable is not one that has just been created.
        const isLost = extent.packets === 0n && (await sizeOfFile(`${path}.idx`)) >= FIRST_ENTRY_END
        return { path, extent: isLost ? undefined : extent, isFlat }
      } catch (error) {
        if (!(error instanceof CapfleetError)) throw error
        if (error.code !== 'aged-out') return { path, extent: undefined, isFlat }
      }
    }
    return undefined
  }
}

/** If they cannot be listed, those of which the log knows, or at least one. */
async function portsOf({ table, folder }: ActiveCapture): Promise<readonly number[]> {
  const found = await unlessUnreadable(portsOnDisk(folder))
  if (found !== undefined) return found
  return table.ports.length === 0 ? [0] : table.ports.map(({ port }) => port)
}

async function unlessUnreadable<T>(listing: Promise<T>): Promise<T | undefined> {
  return await listing.catch((error: unknown) => {
    if (isTemporary(error)) throw error
    return undefined
  })
}

function* entriesAfter(port: PortSegments, number: number): Generator<LogEntry> {
  for (let next = port.after(number); next !== undefined; next = port.after(next.number)) yield next
}
