/** The state of an export: the order, its progress and its outcome. */
import type { ErrorCode } from '../../shared/base/error.ts'
import { type ExportOrder, shownQuery } from './export-order.ts'

export type ExportState = 'queued' | 'running' | 'paused' | 'complete' | 'partial' | 'failed' | 'cancelled'

/** States in which nothing more happens to an export except its removal. */
export const ENDED_STATES: readonly ExportState[] = ['complete', 'partial', 'failed', 'cancelled']
/** States in which a worker may continue it. */
export const LIVE_STATES: readonly ExportState[] = ['queued', 'running', 'paused']

export type ExportStage = 'waiting' | 'preparing' | 'fetching' | 'publishing' | 'ended'

export interface ReportedFailure {
  readonly code: ErrorCode
  readonly detail: string
}

/** Why an export has not begun to fetch the next window. */
export interface Waiting {
  /** The device that it is waiting for. */
  readonly device: string
  readonly detail: string
}

/** A half-open time range of a device's packets that are missing from the files. */
export interface Hole {
  readonly fromNs: string
  readonly toNs: string
  /** Whether the packets are lost for good. */
  readonly final: boolean
  readonly error: ReportedFailure
}

/** The outcome for one device so far. Counts are decimal texts. */
export interface DeviceTally {
  readonly device: string
  readonly packets: string
  readonly bytes: string
  readonly firstNs: string | null
  readonly lastNs: string | null
  readonly outOfOrder: number
  readonly holes: readonly Hole[]
}

/** A file of the result, as far as it has been written. */
export interface ResultFile {
  /** Its final name. */
  readonly name: string
  /** The path at which it is being written. */
  readonly path: string
  readonly bytes: string
  /** Bytes of its packets before compression, including the file header. */
  readonly pcapBytes: string
  readonly packets: string
  readonly firstNs: string | null
  readonly lastNs: string | null
  /** The interfaces of an unfinished pcapng file. */
  readonly interfaces?: readonly WrittenInterface[]
}

/** An interface of an unfinished pcapng file. */
export interface WrittenInterface {
  /** Its Interface Description Block, in base64. */
  readonly description: string
  /** null: there is none of its packets yet, and the file does not describe it. */
  readonly number: number | null
  readonly packets: number
  /** What is said about it at the end of the file. */
  readonly comments: readonly string[]
}

/** A file that the target has. */
export interface ExportedFile {
  readonly name: string
  readonly bytes: string
  readonly packets: string
  readonly firstNs: string | null
  readonly lastNs: string | null
  readonly sha256: string
}

/** A complete file, whether or not the target has it yet. */
export type MadeFile = ResultFile | ExportedFile

/** A time range that is fetched in one go, from all devices. */
export interface ExportWindow {
  /** Number of the window, counted from 0 across the whole export. */
  readonly index: number
  /** The piece of the ordered time that contains it; there is one piece without PartTime. */
  readonly piece: number
  readonly beginNs: string
  readonly endNs: string
  /** Whether it covers the whole piece, which is then fetched with exactly the query that was ordered. */
  readonly isWholePiece: boolean
  /** Whether it is the last window of its piece. */
  readonly endsPiece: boolean
  /** Header of its file; null: taken from the packets that are fetched. */
  readonly header: FileHeader | null
  /** Devices that are not asked, because they could not be asked before. */
  readonly leftOut: readonly string[]
  /** Set if it fills a hole in existing files. */
  readonly isFill?: true
}

/** The facts of a file header, see pcap-header.ts. */
export interface FileHeader {
  readonly linkType: number
  readonly snaplen: number
  readonly nanoseconds: boolean
}

/** How far the existing files of a piece have been read while it is being filled. */
export interface KeptPlace {
  /** File number, from 0. */
  readonly file: number
  /** Bytes of its records, before compression; in pcapng, of all its blocks. */
  readonly bytes: number
  /** In pcapng: its section header and the interfaces before the place, in base64. */
  readonly header?: string
}

/** How a piece of the ordered time is fetched. */
export interface Measured {
  /** Devices whose packets are left out, because they could not be asked. */
  readonly leftOut: readonly string[]
  /** Header of its file; null if one window covers the whole piece. */
  readonly header: FileHeader | null
  /** The length of a window. */
  readonly stepNs: string
}

/**
 * The progress of an export: written after each window, and enough to continue from there. Whatever a worker did after
 * its last checkpoint is repeated and leaves no trace. Its size does not depend on the number of files, since the
 * store keeps each finished file separately.
 */
export interface Checkpoint {
  /** The piece whose windows are queued next. */
  readonly piece: number
  readonly measured: Measured | null
  /** Where the next window begins. */
  readonly cursorNs: string
  /** Windows whose spans are being fetched and that are not in the files yet, in order. */
  readonly ordered: readonly ExportWindow[]
  readonly nextIndex: number
  /** Number of finished files. */
  readonly fileCount: number
  /** The file that is being written, or null. */
  readonly openFile: ResultFile | null
  /** Bytes of all files, including the open one. */
  readonly writtenBytes: string
  readonly devices: readonly DeviceTally[]
  /** What is subtracted from timestamps, by device; the same in all files. null: nothing, or not known yet. */
  readonly offsetsNs: Readonly<Record<string, string>> | null
  readonly fetchedBytes: string
  readonly estimatedBytes: string | null
  /** While holes are being filled: how much of the current piece's old files is in the new ones already. */
  readonly kept?: KeptPlace
}

/** The state of a partial export before its holes began to be filled; it is restored if filling fails. */
export interface FillBase {
  readonly checkpoint: Checkpoint
  readonly endedMs: number
  readonly expiresMs: number
  /** How often the export was filled, including this time. */
  readonly count: number
}

/** The files that a record of an earlier version contains itself. */
export interface FormerFiles {
  /** Finished files, in order. */
  readonly made: readonly MadeFile[]
  /** Files that may be read. */
  readonly kept: readonly ExportedFile[]
}

export interface ExportRecord {
  readonly order: ExportOrder
  readonly state: ExportState
  readonly stage: ExportStage
  /** The current writer of its files, or "" if there is none and the last one stopped cleanly. */
  readonly writer: string
  readonly revision: number
  readonly checkpoint: Checkpoint | undefined
  readonly startedMs: number | undefined
  readonly endedMs: number | undefined
  readonly expiresMs: number | undefined
  /** Whether its user has removed it: it is no longer visible, and a worker removes its files. */
  readonly isRemoved: boolean
  readonly error: ReportedFailure | undefined
  readonly waiting: Waiting | undefined
  /** Number of finished files that the target has. */
  readonly published: number
  /** Data that an earlier version stored in another form; a worker that continues the export stores it again. */
  readonly former: FormerFiles | undefined
  /** Present while its holes are being filled. */
  readonly base: FillBase | undefined
  /** How often its holes were filled. */
  readonly fills: number
  /** Bytes of the spans that are being fetched now, by device. */
  readonly fetching: ReadonlyMap<string, number>
  /** How often each device was retried. */
  readonly retries: ReadonlyMap<string, number>
}

/** Number of files that may be read now. */
export function keptCount({ state, checkpoint, base }: ExportRecord): number {
  if (state === 'complete' || state === 'partial') return checkpoint?.fileCount ?? 0
  return base?.checkpoint.fileCount ?? 0
}

/** An export with the files that may be read now. */
export interface WholeExport {
  readonly record: ExportRecord
  readonly files: readonly ExportedFile[]
}

/** The representation that GET returns. */
export function shownExport({ record, files }: WholeExport, nowMs: number): Record<string, unknown> {
  const { order, state } = record
  return {
    id: order.id,
    user: order.user,
    state,
    createdAt: instant(order.createdMs),
    startedAt: instant(record.startedMs),
    endedAt: instant(record.endedMs),
    expiresAt: instant(record.expiresMs),
    kind: order.plan.kind,
    query: shownQuery(order),
    forcedFilters: order.plan.forcedFilters,
    onMissing: order.onMissing,
    partTimeNs: order.partTimeNs,
    partBytes: order.partBytes,
    target: order.target,
    reason: order.reason,
    scheduleId: order.scheduleId,
    error: record.error ?? null,
    progress: progressOf(record, nowMs),
    devices: order.plan.devices.map((device) => shownDevice(record, device)),
    files,
  }
}

function progressOf(record: ExportRecord, nowMs: number): Record<string, unknown> {
  const { checkpoint, stage, startedMs } = record
  const live = [...record.fetching.values()].reduce((sum, bytes) => sum + bytes, 0)
  const fetched = Number(checkpoint?.fetchedBytes ?? 0) + live
  // Devices count packets regardless of filters, and windows are sized by those counts.
  const isFiltered = record.order.plan.forcedFilters.length > 0
  const estimated = isFiltered ? null : (checkpoint?.estimatedBytes ?? null)
  const ratio = ratioOf(record, fetched, estimated)
  const elapsedMs = startedMs === undefined ? 0 : (record.endedMs ?? nowMs) - startedMs
  const leftMs = ratio === null || ratio === 0 ? null : Math.round((elapsedMs / ratio) * (1 - ratio))
  return {
    stage,
    fetchedBytes: String(fetched),
    estimatedBytes: estimated,
    writtenBytes: checkpoint?.writtenBytes ?? '0',
    doneNs: isFiltered ? null : (checkpoint?.ordered[0]?.beginNs ?? checkpoint?.cursorNs ?? null),
    ratio,
    bytesPerSecond: elapsedMs > 0 && fetched > 0 ? Math.round(fetched / (elapsedMs / 1_000)) : null,
    etaMs: stage === 'ended' ? null : leftMs,
    waiting: stage === 'ended' ? null : (record.waiting ?? null),
  }
}

/** The ratio by bytes, if the devices gave an estimate. */
function ratioOf({ stage, state }: ExportRecord, fetched: number, estimated: string | null): number | null {
  if (stage === 'ended') return state === 'complete' || state === 'partial' ? 1 : null
  const bytes = Number(estimated ?? 0)
  return bytes === 0 ? null : Math.min(1, Math.round((fetched / bytes) * 1e4) / 1e4)
}

function shownDevice({ checkpoint, fetching, retries, stage }: ExportRecord, device: string) {
  const tally = checkpoint?.devices.find((one) => one.device === device)
  const holes = tally?.holes ?? []
  const isEnded = stage === 'ended'
  const ended = holes.length > 0 ? 'missing' : 'complete'
  return {
    device,
    state: isEnded ? ended : fetching.has(device) ? 'fetching' : 'waiting',
    packets: tally?.packets ?? '0',
    bytes: tally?.bytes ?? '0',
    firstNs: tally?.firstNs ?? null,
    lastNs: tally?.lastNs ?? null,
    retries: retries.get(device) ?? 0,
    missing: holes,
  }
}

function instant(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
