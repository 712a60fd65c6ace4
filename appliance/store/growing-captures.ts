import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { measureSegment, type SegmentExtent } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/base/error.ts'
import type { CaptureRecord, SegmentRecord, StreamRecord } from './capture-record.ts'
import { segmentPath } from './store-paths.ts'
import { lastRemoved, summedUp } from './trimmed-record.ts'

const PORT_FOLDER = /^cap(\d{1,3})$/
const INDEX_FILE = /^(\d{8})\.idx$/

/**
 * What captures hold that are being recorded: their records name the finished segments, the ones
 * behind these are found on the disk, and their indexes say how far they are flushed. An index is
 * read from where the last look at it ended.
 */
export class GrowingCaptures {
  /** By record, for a new one names other segments; then by path. */
  readonly #known = new WeakMap<CaptureRecord, Map<string, SegmentExtent>>()

  /**
   * The record with all that can be downloaded at this moment. Fails with store-corrupt and
   * store-unavailable.
   */
  async measure(record: CaptureRecord, folder: string): Promise<CaptureRecord> {
    const known = this.#known.get(record) ?? new Map<string, SegmentExtent>()
    this.#known.set(record, known)
    const streams: StreamRecord[] = []
    for (const port of await portsOf(record, folder)) {
      const stream = await measureStream(record, { port, folder, known })
      if (stream !== undefined) streams.push(stream)
    }
    return spanned(summedUp({ ...record, streams }))
  }
}

interface PortLook {
  readonly port: number
  readonly folder: string
  readonly known: Map<string, SegmentExtent>
}

async function measureStream(
  record: CaptureRecord,
  { port, folder, known }: PortLook,
): Promise<StreamRecord | undefined> {
  const finished = record.streams.find((stream) => stream.port === port)
  const behind = Math.max(finished?.segments.at(-1)?.number ?? 0, lastRemoved(record.removed, port))
  const open: SegmentRecord[] = []
  let header = finished
  for (const number of await numbersBehind(behind, join(folder, `cap${port}`))) {
    const path = segmentPath(folder, port, number)
    const extent = await measureUnlessGone(path, known.get(path))
    if (extent === undefined || extent.packets === 0n) continue
    known.set(path, extent)
    const { minNs, maxNs, packets, bytes, linkType, snaplen } = extent
    open.push({ number, minNs, maxNs, packets, bytes })
    header ??= { port, linkType, snaplen, segments: [] }
  }
  return header && { ...header, segments: [...header.segments, ...open] }
}

/** Ports that have segments, in the record or on the disk. */
async function portsOf(record: CaptureRecord, folder: string): Promise<readonly number[]> {
  const found = (await namesIn(folder)).flatMap((name) => Number(PORT_FOLDER.exec(name)?.[1] ?? Number.NaN))
  const ports = new Set([...record.streams.map(({ port }) => port), ...found])
  return [...ports].filter(Number.isInteger).toSorted((a, b) => a - b)
}

async function numbersBehind(behind: number, folder: string): Promise<readonly number[]> {
  return (await namesIn(folder))
    .map((name) => Number(INDEX_FILE.exec(name)?.[1] ?? 0))
    .filter((number) => number > behind)
    .toSorted((a, b) => a - b)
}

/** None of a folder that is gone. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw new CapfleetError('store-unavailable', `cannot read the store: ${String(error)}`, { cause: error })
  }
}

/** undefined for a segment that was finished and removed since the record was read. */
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

/** With a start and an end that cover every packet, whatever the clock did. */
function spanned(record: CaptureRecord): CaptureRecord {
  let { startNs, endNs } = record
  for (const { minNs, maxNs } of record.streams.flatMap(({ segments }) => segments)) {
    if (minNs < startNs) startNs = minNs
    if (maxNs >= endNs) endNs = maxNs + 1n
  }
  return { ...record, startNs, endNs }
}
