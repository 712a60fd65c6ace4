/**
 * Fills the holes of a partial export: what devices could not give is fetched, window by window as in a new export, and
 * merged with the files that exist. What they hold is not asked for again, because a device may have lost it. Of packets
 * with the same timestamp those that fill a hole come last. A file without a hole stays as it is.
 */
import type { ExportOrder } from './export-order.ts'
import { pieceCount, pieceQuery } from './export-pieces.ts'
import type { Checkpoint, DeviceTally, ExportRecord, ExportWindow, FillBase } from './export-record.ts'
import type { ExportChange } from './export-store.ts'

/** Whether there is anything that a device may still have. */
export function isFillable({ checkpoint }: ExportRecord): boolean {
  return (checkpoint?.devices ?? []).some(({ holes }) => holes.some(({ final }) => !final))
}

/** What an export becomes that is to be filled. REQUIRES: it is partial, and fillable. */
export function fillingOf(record: ExportRecord): ExportChange {
  const { order, checkpoint, endedMs = 0, expiresMs = 0, fills, former } = record
  if (checkpoint === undefined) throw new Error('an export that has ended has a checkpoint')
  const base = { checkpoint, endedMs, expiresMs, count: fills + 1 }
  return {
    state: 'queued',
    stage: 'waiting',
    writer: '',
    error: null,
    base,
    published: 0,
    checkpoint: firstFilling(order, base),
    kept: former?.kept,
  }
}

/** What an export is again that could not be filled. */
export function asBefore(
  { checkpoint, endedMs, expiresMs }: FillBase,
  { former }: Pick<ExportRecord, 'former'>,
): ExportChange {
  return { state: 'partial', checkpoint, endedMs, expiresMs, base: null, kept: former?.kept }
}

/** Where filling begins. A hole stays in the checkpoint until its packets have come. */
export function firstFilling(order: ExportOrder, base: FillBase): Checkpoint {
  const begin = {
    ...base.checkpoint,
    measured: null,
    ordered: [],
    fileCount: 0,
    openFile: null,
    writtenBytes: '0',
    kept: NOTHING_TAKEN,
    fetchedBytes: '0',
    estimatedBytes: '0',
  }
  return atPiece(order, base, begin, 0)
}

export const NOTHING_TAKEN = { file: 0, bytes: 0 }

/** A time of which the same devices have nothing in the files. */
export interface HoleRange {
  readonly beginNs: bigint
  readonly endNs: bigint
  /** In the order of the export's devices; one at least. */
  readonly devices: readonly string[]
}

/** What is to be fetched of a piece, in order and without overlaps, of all devices but those that are left out. */
export function holeRanges(
  order: ExportOrder,
  { checkpoint }: FillBase,
  piece: number,
  leftOut: readonly string[] = [],
): readonly HoleRange[] {
  const holes = checkpoint.devices
    .filter(({ device }) => !leftOut.includes(device))
    .flatMap((tally) => holesIn(tally, pieceQuery(order, piece)))
  const borders = [...new Set(holes.flatMap(({ beginNs, endNs }) => [beginNs, endNs]))].sort((a, b) =>
    a < b ? -1 : 1,
  )
  const ranges: HoleRange[] = []
  for (const [at, beginNs] of borders.slice(0, -1).entries()) {
    const endNs = borders[at + 1] ?? beginNs
    const lacking = holes.filter((hole) => hole.beginNs <= beginNs && hole.endNs >= endNs)
    const devices = order.plan.devices.filter((name) => lacking.some(({ device }) => device === name))
    const last = ranges.at(-1)
    const isOne = last?.endNs === beginNs && last.devices.join() === devices.join()
    if (isOne) ranges[ranges.length - 1] = { ...last, endNs }
    else if (devices.length > 0) ranges.push({ beginNs, endNs, devices })
  }
  return ranges
}

function holesIn(
  { device, holes }: DeviceTally,
  piece: { readonly beginNs: bigint; readonly endNs: bigint },
) {
  return holes.flatMap(({ fromNs, toNs, final }) => {
    const [from, to] = [BigInt(fromNs), BigInt(toNs)]
    const beginNs = from > piece.beginNs ? from : piece.beginNs
    const endNs = to < piece.endNs ? to : piece.endNs
    return final || beginNs >= endNs ? [] : [{ device, beginNs, endNs }]
  })
}

/**
 * The next window that fills, and the checkpoint with it; or the checkpoint at the next piece, where none of the devices
 * of this one can be asked. REQUIRES: the piece is measured, and not all windows are ordered.
 */
export function orderFill(order: ExportOrder, base: FillBase, checkpoint: Checkpoint): Checkpoint {
  const { piece, cursorNs, measured, nextIndex } = checkpoint
  const ranges = holeRanges(order, base, piece, measured?.leftOut)
  const range = ranges.find(({ endNs }) => endNs > BigInt(cursorNs))
  if (range === undefined) return atPiece(order, base, checkpoint, piece + 1)
  const whole = pieceQuery(order, piece)
  const beginNs = range.beginNs > BigInt(cursorNs) ? range.beginNs : BigInt(cursorNs)
  const stepEndNs = beginNs + BigInt(measured?.stepNs ?? 0)
  const endNs = stepEndNs < range.endNs ? stepEndNs : range.endNs
  const endsPiece = endNs === ranges.at(-1)?.endNs
  const window: ExportWindow = {
    index: nextIndex,
    piece,
    beginNs: String(beginNs),
    endNs: String(endNs),
    isWholePiece: beginNs === whole.beginNs && endNs === whole.endNs,
    endsPiece,
    header: measured?.header ?? null,
    leftOut: order.plan.devices.filter((device) => !range.devices.includes(device)),
    isFill: true,
  }
  const ordered = { ...checkpoint, ordered: [...checkpoint.ordered, window], nextIndex: nextIndex + 1 }
  return endsPiece ? atPiece(order, base, ordered, piece + 1) : { ...ordered, cursorNs: window.endNs }
}

/** The checkpoint at the first piece from `from` on that has a hole. */
function atPiece(order: ExportOrder, base: FillBase, checkpoint: Checkpoint, from: number): Checkpoint {
  for (let piece = from; piece < pieceCount(order); piece += 1) {
    const [first] = holeRanges(order, base, piece)
    if (first !== undefined) return { ...checkpoint, piece, measured: null, cursorNs: String(first.beginNs) }
  }
  return { ...checkpoint, piece: pieceCount(order), measured: null }
}

/** Numbers of files, half-open. */
export interface FileNumbers {
  readonly from: number
  readonly end: number
}

/** The files of one piece as they are now, of `count`: with PartTime each piece is one file. */
export function filesOfPiece({ partTimeNs }: ExportOrder, count: number, piece: number): FileNumbers {
  return partTimeNs === null ? { from: 0, end: count } : { from: piece, end: piece + 1 }
}

/** The files that stay as they are after `made` ones, up to the piece `end`. */
export function keptUpTo(
  { partTimeNs }: ExportOrder,
  { checkpoint: { fileCount } }: FillBase,
  made: number,
  end: number,
): FileNumbers {
  if (partTimeNs !== null) return { from: made, end }
  return { from: 0, end: made === 0 && end > 0 ? fileCount : 0 }
}
