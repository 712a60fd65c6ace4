/** An export as it stands: what was ordered, how far it is, and what became of it. */
import type { ErrorCode } from '../../shared/base/error.ts'
import { type ExportOrder, shownQuery } from './export-order.ts'

export type ExportState = 'queued' | 'running' | 'paused' | 'complete' | 'partial' | 'failed' | 'cancelled'

/** Nothing happens to it any more, but for its removal. */
export const ENDED_STATES: readonly ExportState[] = ['complete', 'partial', 'failed', 'cancelled']
/** A worker may go on with it. */
export const LIVE_STATES: readonly ExportState[] = ['queued', 'running', 'paused']

export type ExportStage = 'waiting' | 'preparing' | 'fetching' | 'publishing' | 'ended'

export interface ReportedFailure {
  readonly code: ErrorCode
  readonly detail: string
}

/** Why an export has not begun to fetch the time that comes next. */
export interface Waiting {
  /** The device that is waited for. */
  readonly device: string
  readonly detail: string
}

/** A half-open range of time of which a device's packets are not in the files. */
export interface Hole {
  readonly fromNs: string
  readonly toNs: string
  /** The packets are gone for good. */
  readonly final: boolean
  readonly error: ReportedFailure
}

/** What came of one device so far. Counts are decimal texts. */
export interface DeviceTally {
  readonly device: string
  readonly packets: string
  readonly bytes: string
  readonly firstNs: string | null
  readonly lastNs: string | null
  readonly outOfOrder: number
  readonly holes: readonly Hole[]
}

/** A file of the result, as far as it is made. */
export interface ResultFile {
  /** What it will be called. */
  readonly name: string
  /** Where it is being made. */
  readonly path: string
  readonly bytes: string
  /** Bytes of its packets before compression, with the header of the file. */
  readonly pcapBytes: string
  readonly packets: string
  readonly firstNs: string | null
  readonly lastNs: string | null
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

/** A file that nothing more comes into: the target has it, or is still to be given it. */
export type MadeFile = ResultFile | ExportedFile

/** A time that is fetched at once, of all devices. */
export interface ExportWindow {
  /** From 0, over the whole export. */
  readonly index: number
  /** The piece of the ordered time in which it is: without PartTime there is one. */
  readonly piece: number
  readonly beginNs: string
  readonly endNs: string
  /** It is all of its piece, which is fetched by the very query that was ordered. */
  readonly isWholePiece: boolean
  /** Nothing of its piece comes behind it. */
  readonly endsPiece: boolean
  /** Of its file; null: what it holds tells. */
  readonly header: FileHeader | null
  /** Devices that are not asked, because they could not be before. */
  readonly leftOut: readonly string[]
  /** It fills a hole of files that are there. */
  readonly isFill?: true
}

/** As in pcap-header.ts. */
export interface FileHeader {
  readonly linkType: number
  readonly snaplen: number
  readonly nanoseconds: boolean
}

/** How far the files of a piece have been read that is filled. */
export interface KeptPlace {
  /** From 0. */
  readonly file: number
  /** Of its records, before compression. */
  readonly bytes: number
}

/** How a piece of the ordered time is fetched. */
export interface Measured {
  /** Devices whose packets are left out, because they could not be asked. */
  readonly leftOut: readonly string[]
  /** Of its file; null: one window is all of it. */
  readonly header: FileHeader | null
  /** The length of a window. */
  readonly stepNs: string
}

/**
 * How far an export is: written after each window, and enough to continue from there. Whatever a worker did after its
 * last checkpoint is done again, and leaves no trace. It does not grow with the number of files: the store keeps each
 * file that is made by itself.
 */
export interface Checkpoint {
  /** The piece whose windows are ordered next. */
  readonly piece: number
  readonly measured: Measured | null
  /** Where the next window begins. */
  readonly cursorNs: string
  /** Windows whose spans are being fetched and that are not in the files yet, in order. */
  readonly ordered: readonly ExportWindow[]
  readonly nextIndex: number
  /** Number of files that are made. */
  readonly fileCount: number
  /** The file that is being written; null: none is. */
  readonly openFile: ResultFile | null
  /** Bytes of all files, the open one included. */
  readonly writtenBytes: string
  readonly devices: readonly DeviceTally[]
  /** What is subtracted from timestamps, by device: the same in all files. null: nothing is, or not yet known. */
  readonly offsetsNs: Readonly<Record<string, string>> | null
  readonly fetchedBytes: string
  readonly estimatedBytes: string | null
  /** While holes are filled: what of the present piece's files is in the new ones already. */
  readonly kept?: KeptPlace
}

/** What a partial export was before its holes began to be filled: it is so again when that fails. */
export interface FillBase {
  readonly checkpoint: Checkpoint
  readonly endedMs: number
  readonly expiresMs: number
  /** How often the export was filled, this time included. */
  readonly count: number
}

/** The files that a record of an earlier version has in itself. */
export interface FormerFiles {
  /** Those that are made, in their order. */
  readonly made: readonly MadeFile[]
  /** Those that may be read. */
  readonly kept: readonly ExportedFile[]
}

export interface ExportRecord {
  readonly order: ExportOrder
  readonly state: ExportState
  readonly stage: ExportStage
  /** Who writes its files now; "": nobody, and whoever did has stopped orderly. */
  readonly writer: string
  readonly revision: number
  readonly checkpoint: Checkpoint | undefined
  readonly startedMs: number | undefined
  readonly endedMs: number | undefined
  readonly expiresMs: number | undefined
  /** Its user has removed it: it is not there any more, and a worker removes its files. */
  readonly isRemoved: boolean
  readonly error: ReportedFailure | undefined
  readonly waiting: Waiting | undefined
  /** How many of the files that are made the target has. */
  readonly published: number
  /** What an earlier version has stored in another form; a worker that continues the export stores it again. */
  readonly former: FormerFiles | undefined
  /** Present while its holes are being filled. */
  readonly base: FillBase | undefined
  /** How often its holes were filled. */
  readonly fills: number
  /** Bytes of the spans that are being fetched now, by device. */
  readonly fetching: ReadonlyMap<string, number>
  /** How often each device was asked again. */
  readonly retries: ReadonlyMap<string, number>
}

/** How many files may be read now. */
export function keptCount({ state, checkpoint, base }: ExportRecord): number {
  if (state === 'complete' || state === 'partial') return checkpoint?.fileCount ?? 0
  return base?.checkpoint.fileCount ?? 0
}

/** An export with the files that may be read now. */
export interface WholeExport {
  readonly record: ExportRecord
  readonly files: readonly ExportedFile[]
}

/** As GET shows it. */
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
  // Devices count packets whatever a filter says, and windows are cut by what they count.
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

/** By bytes where the devices told how many there will be. */
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
