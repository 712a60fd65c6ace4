/** A capture as its readers see it: its record, and the segments that it holds. */
import type { StreamFiles } from '../../native/download-options.ts'
import {
  LOG_ENTRY_BYTES,
  type LogEntry,
  packLogEntries,
  readLogEntry,
  SegmentFlag,
} from '../../native/segment-entry.ts'
import type { CaptureRecord } from './capture-record.ts'
import type { PortSegments } from './port-segments.ts'
import type { Drops, RemovedSegments, SegmentTable } from './segment-table.ts'
import { portFolder, segmentPath } from './store-paths.ts'

const NANOS_PER_MS = 1_000_000n

export interface StoredCapture extends CaptureRecord {
  /** Finished segments. The table grows while the capture does, so values read at the same moment belong together. */
  readonly table: SegmentTable
  /** For an active capture: the segments that are being written, as far as they are flushed. */
  readonly growing: readonly LogEntry[]
  /** Number of packets that are held. */
  readonly packets: bigint
  /** Bytes of the segment files that are held. */
  readonly bytes: bigint
  /**
   * undefined: nothing was lost, or nothing is known about losses. As of the last finished segment or the capture's
   * end.
   */
  readonly drops: Drops | undefined
  /** undefined: the capture is complete. */
  readonly removed: RemovedSegments | undefined
  /** The parts that could not be read, and what was done about them; empty = the capture is sound. */
  readonly problems: readonly string[]
}

/** The capture with the counts and the range according to its segments. */
export function storedCapture(
  record: CaptureRecord,
  table: SegmentTable,
  { growing = [], problems = [] }: Partial<Pick<StoredCapture, 'growing' | 'problems'>> = {},
): StoredCapture {
  let { startNs, endNs } = record
  let [packets, bytes] = [table.packets, table.bytes]
  const widen = (minNs: bigint, maxNs: bigint): void => {
    if (minNs < startNs) startNs = minNs
    if (maxNs >= endNs) endNs = maxNs + 1n
  }
  for (const port of table.ports) {
    if (port.minNs !== undefined && port.maxNs !== undefined) widen(port.minNs, port.maxNs)
  }
  for (const segment of stillGrowing({ table, growing })) {
    widen(segment.minNs, segment.maxNs)
    packets += segment.packets
    bytes += segment.bytes
  }
  return {
    ...record,
    startNs,
    endNs,
    table,
    growing,
    packets,
    bytes,
    problems,
    // Getters read the current table, so that a caller that then reads segments learns which ones are gone.
    get drops() {
      return table.drops
    },
    get removed() {
      return table.removed
    },
  }
}

export function createdNs({ createdAt }: Pick<StoredCapture, 'createdAt'>): bigint {
  return BigInt(Date.parse(createdAt)) * NANOS_PER_MS
}

/** When anything was last stored in it, as far as it is known. The packets of an import may have any times. */
export function lastStoredNs(capture: StoredCapture): bigint {
  const created = createdNs(capture)
  return capture.type === 'capture' && capture.endNs > created ? capture.endNs : created
}

/** Ports that hold segments, ascending. */
export function portsOf(capture: StoredCapture): readonly number[] {
  const held = capture.table.ports.filter(({ length }) => length > 0).map(({ port }) => port)
  if (capture.growing.length === 0) return held
  return [...new Set([...held, ...stillGrowing(capture).map(({ port }) => port)])].sort((a, b) => a - b)
}

/** Between two reads the recorder may have finished a segment: it is in the table then, and must not count twice. */
function stillGrowing({ table, growing }: Pick<StoredCapture, 'table' | 'growing'>): readonly LogEntry[] {
  return growing.filter(({ port, number }) => number > (table.portOf(port)?.lastNumber ?? 0))
}

/** The entries of a port's segments that overlap [fromNs, toNs), in recording order, in the engine's form. */
export function selectSegments(
  capture: StoredCapture,
  port: number,
  { fromNs, toNs }: { readonly fromNs: bigint; readonly toNs: bigint },
): Buffer {
  const written = stillGrowing(capture).filter(
    (one) => one.port === port && one.maxNs >= fromNs && one.minNs < toNs,
  )
  const finished = capture.table.portOf(port)?.select(fromNs, toNs) ?? Buffer.alloc(0)
  return written.length === 0 ? finished : Buffer.concat([finished, packLogEntries(written)])
}

/** The same entries, one by one. */
export function* segmentsIn(
  capture: StoredCapture,
  port: number,
  span: { readonly fromNs: bigint; readonly toNs: bigint },
): Generator<LogEntry> {
  const entries = selectSegments(capture, port, span)
  for (let at = 0; at < entries.length; at += LOG_ENTRY_BYTES) yield readLogEntry(entries, at)
}

/** One segment in the engine's form; `folder` is the capture's. */
export function streamOf(folder: string, segment: LogEntry): StreamFiles {
  const { port } = segment
  return { port, folder: portFolder(folder, port), segments: packLogEntries([segment]) }
}

/** The path of a segment without its ending; `folder` is the capture's. */
export function pathOf(folder: string, { port, number, flags }: LogEntry): string {
  return segmentPath(folder, port, { number, isFlat: (flags & SegmentFlag.flat) !== 0 })
}

/** Link type word of a port's segments; undefined if it has none, or only lost ones of which it is not known. */
export function linkTypeOf(capture: StoredCapture, port: number): number | undefined {
  const finished = capture.table.portOf(port)?.newest
  const found = finished ?? capture.growing.find((one) => one.port === port)
  return found === undefined || found.snaplen === 0 ? undefined : found.linkType
}

/** Every segment, by port, in recording order. */
export function* segmentsOf(capture: StoredCapture): Generator<LogEntry> {
  for (const port of capture.table.ports) yield* entriesOf(port)
  yield* stillGrowing(capture)
}

export function* entriesOf(port: PortSegments): Generator<LogEntry> {
  for (let index = 0; index < port.length; index++) yield port.at(index)
}

/** The smallest timestamp that the capture holds. */
export function oldestHeldNs(capture: StoredCapture): bigint | undefined {
  let least: bigint | undefined
  const consider = (ns: bigint | undefined): void => {
    if (ns !== undefined && (least === undefined || ns < least)) least = ns
  }
  for (const { minNs } of capture.table.ports) consider(minNs)
  for (const { minNs } of stillGrowing(capture)) consider(minNs)
  return least
}

/** Whether files of it are damaged, packets are known to be lost, or not all drops are known. */
export function isDamaged(capture: StoredCapture): boolean {
  const { table, problems } = capture
  if (problems.length > 0 || table.damagedSegments > 0 || table.mayLackDrops) return true
  return stillGrowing(capture).some(({ flags }) => (flags & SegmentFlag.damaged) !== 0)
}

/** How much of the capture is held, in percent of its bytes; 100 only for a complete one. */
export function validPercent({ bytes, removed }: StoredCapture): number {
  if (removed === undefined) return 100
  const share = (100n * bytes) / (bytes + removed.bytes + 1n)
  return Number(share > 99n ? 99n : share)
}
