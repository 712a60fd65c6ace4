/**
 * The piece of an order that comes next: measured on all devices that can be read, once they have the packets of its
 * time, and with room kept for it.
 */
import { CapfleetError } from '../../base/error.ts'
import type { ExportOrder } from '../export-order.ts'
import { pieceQuery } from '../export-pieces.ts'
import type { Checkpoint } from '../export-record.ts'
import { judgeFailure } from './device-trouble.ts'
import { type ExportParts, Later } from './export-parts.ts'
import { reserveSpace } from './export-space.ts'
import { flushWaitMs } from './flushed-device.ts'
import { measurePiece } from './measure-piece.ts'

export interface Measuring {
  readonly order: ExportOrder
  readonly checkpoint: Checkpoint
  /** How many windows are in the spool at the same time. */
  readonly windowsAhead: number
  /** Shown in the queue where a stream is needed for it. */
  readonly id: string
  readonly signal: AbortSignal
}

/** What of the checkpoint comes of it. */
export type Measured = Pick<Checkpoint, 'measured' | 'estimatedBytes' | 'offsetsNs'>

/**
 * undefined: the time of the piece is not over, and windows that are ordered can be joined meanwhile. Throws Later when
 * there are none, or when a device is to be asked again; fails for what ends the export.
 */
export async function measureNext(parts: ExportParts, measuring: Measuring): Promise<Measured | undefined> {
  const { order, checkpoint, id, signal } = measuring
  const { piece, ordered, estimatedBytes: known } = checkpoint
  const { spanBytes, estimateTimeoutMs, leaseWaitMs: waitMs } = parts.limits
  const leftOut: string[] = []
  for (;;) {
    const devices = order.plan.devices.filter((device) => !leftOut.includes(device))
    try {
      const query = pieceQuery(order, piece)
      const lateMs = await timeToFlushMs(parts, devices, { endNs: query.endNs, signal })
      if (lateMs > 0 && ordered.length > 0) return undefined
      if (lateMs > 0) throw new Later(lateMs)
      const asked = { order, query, devices, spanBytes, estimateTimeoutMs, waitMs, id, signal }
      const { header, stepNs, bytes, isExact } = await measurePiece(parts, asked)
      if (bytes !== undefined) await reserve(parts, measuring, bytes, isExact)
      const isUnknown = bytes === undefined || (known === null && piece > 0)
      return {
        measured: { leftOut, header, stepNs },
        estimatedBytes: isUnknown ? null : String(BigInt(known ?? 0) + bytes),
        offsetsNs: checkpoint.offsetsNs ?? offsetsNow(parts, order),
      }
    } catch (error) {
      leftOut.push(await deviceToLeaveOut(parts, order, devices, error))
    }
  }
}

/** More than a device that is late is waited for before it counts as one that cannot be read. */
const FLUSH_LATE_MS = 600_000

/** How long to wait before all devices may have their packets up to a time; 0: they have. */
async function timeToFlushMs(
  { fleet, limits, clock }: ExportParts,
  devices: readonly string[],
  { endNs, signal }: { readonly endNs: bigint; readonly signal: AbortSignal },
): Promise<number> {
  const question = {
    endNs,
    nowMs: clock.nowMs(),
    // Until then a device that is late has been given up.
    recentMs: limits.deviceRetryMs + FLUSH_LATE_MS,
    timeoutMs: limits.estimateTimeoutMs,
    signal,
  }
  const waits = await Promise.all(devices.map((device) => flushWaitMs(fleet.get(device), question)))
  return Math.max(0, ...waits)
}

/** A filter may leave little of what is there: then only the spool is known to need room. */
async function reserve(
  parts: ExportParts,
  { order, windowsAhead }: Measuring,
  bytes: bigint,
  isExact: boolean,
): Promise<void> {
  const ahead = BigInt(windowsAhead * order.plan.devices.length * parts.limits.spanBytes)
  const needed = { files: isExact ? bytes : 0n, spool: bytes < ahead ? bytes : ahead }
  await reserveSpace(parts, order, needed)
}

/** Clocks are measured again and again: the first measure counts for all files, and for the manifest. */
function offsetsNow({ fleet }: ExportParts, { plan, align }: ExportOrder): Checkpoint['offsetsNs'] {
  if (!align) return null
  const offsets = plan.devices.flatMap((device): [string, string][] => {
    const clock = fleet.clockOf(device)
    return clock === undefined ? [] : [[device, String(clock.offsetNs)]]
  })
  return Object.fromEntries(offsets)
}

/** The device without which the export goes on. Throws when it cannot, or not yet. */
async function deviceToLeaveOut(
  parts: ExportParts,
  order: ExportOrder,
  asked: readonly string[],
  error: unknown,
): Promise<string> {
  const named = error instanceof CapfleetError ? error.details.members?.devices : undefined
  const [device] = Array.isArray(named) ? (named as string[]) : []
  if (device === undefined || !asked.includes(device)) throw error
  const failure = await judgeFailure(parts, order, device, error)
  if (order.onMissing === 'fail' || asked.length === 1) throw failure
  return device
}
