import { type LogEntry, SegmentFlag } from '../../native/segment-entry.ts'
import { measureSegment, type SegmentExtent } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { SegmentTable } from './segment-table.ts'
import { entryOf, portsOnDisk } from './segments-on-disk.ts'
import { segmentPath } from './store-paths.ts'

/** A writer that abandoned a segment may leave its number unused. */
const MISSING_MAX = 2

/**
 * The segments of one active capture that its log does not list yet: those numbered after its last entry. Their indexes
 * say how far they are flushed; each read continues where the last one ended.
 */
export class GrowingSegments {
  /** Extents by path. */
  #known = new Map<string, SegmentExtent>()

  /** All segments that hold a packet. Fails with store-corrupt and store-unavailable. */
  async measure(table: SegmentTable, captureFolder: string): Promise<readonly LogEntry[]> {
    const seen = new Map<string, SegmentExtent>()
    const growing: LogEntry[] = []
    for (const port of await portsOnDisk(captureFolder)) {
      growing.push(...(await this.#measurePort(table, { captureFolder, port, seen })))
    }
    this.#known = seen
    return growing
  }

  async #measurePort(
    table: SegmentTable,
    {
      captureFolder,
      port,
      seen,
    }: {
      readonly captureFolder: string
      readonly port: number
      readonly seen: Map<string, SegmentExtent>
    },
  ): Promise<readonly LogEntry[]> {
    const growing: LogEntry[] = []
    const last = table.portOf(port)?.lastNumber ?? 0
    for (let number = last + 1, missing = 0; missing < MISSING_MAX; number++) {
      const found = await this.#find(captureFolder, port, number)
      if (found === undefined) {
        missing += 1
        continue
      }
      missing = 0
      seen.set(found.path, found.extent)
      if (found.extent.packets === 0n) continue
      const entry = entryOf(found.extent, { port, number, isFlat: found.isFlat })
      growing.push({ ...entry, flags: entry.flags | SegmentFlag.growing })
    }
    return growing
  }

  /** Where writers put segments today, or where they did in stores of format 1. */
  async #find(captureFolder: string, port: number, number: number) {
    for (const isFlat of [false, true]) {
      const path = segmentPath(captureFolder, port, { number, isFlat })
      const extent = await measureUnlessGone(path, this.#known.get(path))
      if (extent !== undefined) return { path, extent, isFlat }
    }
    return undefined
  }
}

/** undefined for a segment that does not exist. */
async function measureUnlessGone(
  path: string,
  known: SegmentExtent | undefined,
): Promise<SegmentExtent | undefined> {
  try {
    return await measureSegment(path, known)
  } catch (error) {
    if (error instanceof CapfleetError && error.code === 'aged-out') return undefined
    throw error
  }
}
