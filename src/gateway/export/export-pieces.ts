/**
 * Splits the time of an export into pieces, which become files, and each piece into windows, which are fetched in one
 * go.
 */

import { downloadFileName, plainFileName } from '../../shared/query/download/download-file-name.ts'
import type { BoundedQuery } from '../fleet/plan/within-bounds.ts'
import { type ExportOrder, orderedQuery } from './export-order.ts'
import type { Checkpoint, ExportWindow } from './export-record.ts'

/** Number of pieces: 1 without PartTime. */
export function pieceCount(order: ExportOrder): number {
  if (order.partTimeNs === null) return 1
  const { beginNs, endNs } = orderedQuery(order)
  const partNs = BigInt(order.partTimeNs)
  return Math.max(1, Number((endNs - beginNs + partNs - 1n) / partNs))
}

/** The query of a direct download of the piece. */
export function pieceQuery(order: ExportOrder, piece: number): BoundedQuery {
  const query = orderedQuery(order)
  if (order.partTimeNs === null) return query
  const partNs = BigInt(order.partTimeNs)
  const beginNs = query.beginNs + BigInt(piece) * partNs
  const endNs = beginNs + partNs
  return { ...query, beginNs, endNs: endNs < query.endNs ? endNs : query.endNs }
}

/**
 * The name of the n-th file, from 1. If there is only one file, it is named like a direct download, restricted to
 * plain letters.
 */
export function resultName(order: ExportOrder, piece: number, part: number): string {
  const query = pieceQuery(order, piece)
  const [only, ...more] = order.plan.devices
  const place = more.length === 0 && only !== undefined ? only : 'fleet'
  const name = plainFileName(downloadFileName(query, { captureName: query.captureName, place }))
  if (order.partBytes === null) return name
  return name.replace(/\.pcap/, `_part${String(part).padStart(4, '0')}.pcap`)
}

/** The checkpoint of a new export. */
export function firstCheckpoint(order: ExportOrder): Checkpoint {
  const nothing = { packets: '0', bytes: '0', firstNs: null, lastNs: null, outOfOrder: 0, holes: [] }
  return {
    piece: 0,
    measured: null,
    cursorNs: String(pieceQuery(order, 0).beginNs),
    ordered: [],
    nextIndex: 0,
    fileCount: 0,
    openFile: null,
    writtenBytes: '0',
    devices: order.plan.devices.map((device) => ({ device, ...nothing })),
    offsetsNs: null,
    fetchedBytes: '0',
    estimatedBytes: null,
  }
}

/** What is subtracted from the timestamps of a device, or undefined for nothing. */
export function offsetOf({ offsetsNs }: Checkpoint, device: string): bigint | undefined {
  const offsetNs = offsetsNs?.[device]
  return offsetNs === undefined ? undefined : BigInt(offsetNs)
}

/** Whether all windows have been queued. */
export function isAllOrdered(order: ExportOrder, { piece }: Checkpoint): boolean {
  return piece >= pieceCount(order)
}

/**
 * The next window of the current piece, and the checkpoint that includes it. REQUIRES: the piece has been measured,
 * and not all windows have been queued.
 */
export function orderWindow(order: ExportOrder, checkpoint: Checkpoint): Checkpoint {
  const { piece, cursorNs, measured, nextIndex } = checkpoint
  const { endNs } = pieceQuery(order, piece)
  const stepNs = BigInt(measured?.stepNs ?? 0)
  const windowEndNs = BigInt(cursorNs) + stepNs
  const endsPiece = windowEndNs >= endNs
  const window: ExportWindow = {
    index: nextIndex,
    piece,
    beginNs: cursorNs,
    endNs: String(endsPiece ? endNs : windowEndNs),
    isWholePiece: measured?.header === null,
    endsPiece,
    header: measured?.header ?? null,
    leftOut: measured?.leftOut ?? [],
  }
  const ordered = { ...checkpoint, ordered: [...checkpoint.ordered, window], nextIndex: nextIndex + 1 }
  if (!endsPiece) return { ...ordered, cursorNs: window.endNs }
  return { ...ordered, cursorNs: window.endNs, piece: piece + 1, measured: null }
}
