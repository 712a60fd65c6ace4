/**
 * Fills the holes of a partial export: what devices could not provide is fetched, window by window as in a new export,
 * and merged with the existing files. Their contents are not fetched again, because a device may have lost them. Among
 * packets with equal timestamps, those that fill a hole come last. A file without a hole stays unchanged.
 */
import type { ExportOrder } from './export-order.ts'
import { pieceCount, pieceQuery } from './export-pieces.ts'
import type { Checkpoint, DeviceTally, ExportRecord, ExportWindow, FillBase } from './export-record.ts'
import type { ExportChange } from './record-fields.ts'

/** Whether a device may still have something that is missing. */
export function isFillable({ checkpoint }: ExportRecord): boolean {
  return (checkpoint?.devices ?? []).some(({ holes }) => holes.some(({ final }) => !final))
}

/** The change that makes an export one that is being filled. REQUIRES: it is partial, and fillable. */
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

/** The change that restores an export whose filling failed. */
export function asBefore(
  { checkpoint, endedMs, expiresMs }: FillBase,
  { former }: Pick<ExportRecord, 'former'>,
): ExportChange {
  return { state: 'partial', checkpoint, endedMs, expiresMs, base: null, kept: former?.kept }
}

/** The checkpoint at which filling begins. A hole stays in the checkpoint until its packets have been fetched. */
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

/** A time range for which the same devices have nothing in the files. */
export interface HoleRange {
  readonly beginNs: bigint
  readonly endNs: bigint
  /** At least one device, in the order of the export. */
  readonly devices: readonly string[]
}

/** What is to be fetched of a piece: in order, without overlaps, from all devices except those that are left out. */
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
 * The next window to fill, and the checkpoint that includes it; or the checkpoint at the next piece, if none of the
 * devices of this one can be asked. REQUIRES: the piece has been measured, and not all windows have been queued.
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

/** The checkpoint at the first piece with a hole, starting at `from`. */
function atPiece(order: ExportOrder, base: FillBase, checkpoint: Checkpoint, from: number): Checkpoint {
  for (let piece = from; piece < pieceCount(order); piece += 1) {
    const [first] = holeRanges(order, base, piece)
    if (first !== undefined) return { ...checkpoint, piece, measured: null, cursorNs: String(first.beginNs) }
  }
  return { ...checkpoint, piece: pieceCount(order), measured: null }
}

/** A half-open range of file numbers. */
export interface FileNumbers {
  readonly from: number
  readonly end: number
}

/** The current files of one piece, out of `count`: with PartTime each piece is one file. */
export function filesOfPiece({ partTimeNs }: ExportOrder, count: number, piece: number): FileNumbers {
  return partTimeNs === null ? { from: 0, end: count } : { from: piece, end: piece + 1 }
}

/** The unchanged files that follow `made` finished ones, up to piece `end`. */
export function keptUpTo(
  { partTimeNs }: ExportOrder,
  { checkpoint: { fileCount } }: FillBase,
  made: number,
  end: number,
): FileNumbers {
  if (partTimeNs !== null) return { from: made, end }
  return { from: 0, end: made === 0 && end > 0 ? fileCount : 0 }
}
