/**
 * Measures the next piece of an order on all readable devices, once they have the packets of its time, and reserves
 * space for it.
 */
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import { type ExportParts, Later } from '../../gateway/export/export-parts.ts'
import { pieceQuery } from '../../gateway/export/export-pieces.ts'
import {
  type Checkpoint,
  type ExportRecord,
  keptCount,
  LIVE_STATES,
} from '../../gateway/export/export-record.ts'
import { filesOfPiece, holeRanges } from '../../gateway/export/fill-export.ts'
import { requireKnownClocks } from '../../gateway/fetch/body/known-clocks.ts'
import { CapfleetError, secondsText } from '../../shared/base/error.ts'
import { judgeFailure } from './device-trouble.ts'
import { reserveSpace } from './export-space.ts'
import { keptOf } from './filled-files.ts'
import { deviceAheadNs, flushWaitMs } from './flushed-device.ts'
import { keptHeader } from './kept-records.ts'
import { measurePiece, type Measuring as PieceMeasuring } from './measure-piece.ts'
import { refuseReplaced } from './same-devices.ts'

export interface Measuring {
  /** As its writer read it. */
  readonly record: ExportRecord
  readonly checkpoint: Checkpoint
  /** Number of windows that are in the spool at the same time. */
  readonly windowsAhead: number
  /** Shown in the queue if a stream is needed for it. */
  readonly id: string
  readonly signal: AbortSignal
}

/** The resulting part of the checkpoint. */
export type Measured = Pick<Checkpoint, 'measured' | 'estimatedBytes' | 'offsetsNs'>

/**
 * Returns undefined if the time of the piece is not over yet and queued windows can be joined meanwhile. Throws Later
 * if there are none, or if a device is to be retried; fails if the export must end.
 */
export async function measureNext(parts: ExportParts, measuring: Measuring): Promise<Measured | undefined> {
  const { record, checkpoint, id, signal } = measuring
  const { order } = record
  const { ordered, estimatedBytes: known } = checkpoint
  const { spanBytes, estimateTimeoutMs, leaseWaitMs: waitMs } = parts.limits
  const leftOut: string[] = []
  for (;;) {
    const asked = await askedPiece(parts, measuring, leftOut)
    if (asked.devices.length === 0) return withoutDevices(checkpoint, leftOut)
    try {
      for (const device of asked.devices) await refuseReplaced(parts, order, device, signal)
      const late = await latestDevice(parts, asked.devices, { endNs: asked.query.endNs, signal })
      if (late !== undefined && ordered.length > 0) return undefined
      if (late !== undefined) return await waitFor(parts, order, late, asked.query.endNs)
      const options = { order, spanBytes, estimateTimeoutMs, waitMs, id, signal }
      const { header, stepNs, bytes, isExact } = await measurePiece(parts, { ...asked, ...options })
      if (bytes !== undefined) await reserve(parts, { ...measuring, asked, bytes, isExact })
      const isUnknown = bytes === undefined || (known === null && checkpoint.piece > 0)
      return {
        measured: { leftOut, header, stepNs },
        estimatedBytes: isUnknown ? null : String(BigInt(known ?? 0) + bytes),
        offsetsNs: await offsetsOf(parts, measuring, asked.devices),
      }
    } catch (error) {
      leftOut.push(await deviceToLeaveOut(parts, measuring, asked.devices, error))
    }
  }
}

type AskedPiece = Pick<PieceMeasuring, 'query' | 'devices' | 'filled'>

/** What to request from which devices in the current piece; when files are being filled, what they lack. */
async function askedPiece(
  parts: ExportParts,
  { record, checkpoint: { piece } }: Measuring,
  leftOut: readonly string[],
): Promise<AskedPiece> {
  const { order, base } = record
  const query = pieceQuery(order, piece)
  if (base === undefined)
    return { query, devices: order.plan.devices.filter((device) => !leftOut.includes(device)) }
  const ranges = holeRanges(order, base, piece, leftOut)
  const { from, end } = filesOfPiece(order, keptCount(record), piece)
  const files = await parts.store.keptFiles(record, from, end)
  return {
    query: { ...query, beginNs: ranges[0]?.beginNs ?? 0n, endNs: ranges.at(-1)?.endNs ?? 0n },
    devices: order.plan.devices.filter((name) => ranges.some(({ devices }) => devices.includes(name))),
    filled: {
      ranges: ranges.length,
      packets: files.reduce((sum, { packets }) => sum + BigInt(packets), 0n),
      bytes: files.reduce((sum, { bytes }) => sum + BigInt(bytes), 0n),
      header: () => keptHeader(keptOf(parts, record, piece)),
    },
  }
}

/** The holes of the piece stay. */
function withoutDevices({ estimatedBytes, offsetsNs }: Checkpoint, leftOut: readonly string[]): Measured {
  return { measured: { leftOut, header: null, stepNs: '0' }, estimatedBytes, offsetsNs }
}

/** How much longer than a late device is waited for before it counts as unreadable. */
const FLUSH_LATE_MS = 600_000

interface LateDevice {
  readonly device: string
  /** How long to wait before it is asked again. */
  readonly waitMs: number
}

/** The device with the longest wait; undefined: all may have their packets up to a time. */
async function latestDevice(
  { fleet, limits, clock }: ExportParts,
  devices: readonly string[],
  { endNs, signal }: { readonly endNs: bigint; readonly signal: AbortSignal },
): Promise<LateDevice | undefined> {
  const question = {
    endNs,
    nowMs: clock.nowMs(),
    hostAheadMs: Date.now() - clock.nowMs(),
    // By then a late device has been given up.
    recentMs: limits.deviceRetryMs + FLUSH_LATE_MS,
    timeoutMs: limits.estimateTimeoutMs,
    signal,
  }
  const asked = devices.map(async (device) => ({
    device,
    waitMs: await flushWaitMs(fleet.get(device), question),
  }))
  const [latest] = (await Promise.all(asked)).sort((a, b) => b.waitMs - a.waitMs)
  return latest !== undefined && latest.waitMs > 0 ? latest : undefined
}

/** A brief wait needs no explanation. */
const BRIEF_MS = 1_000

/** Records in the export why it waits. Throws Later. */
async function waitFor(
  { store, fleet, clock, log }: ExportParts,
  order: ExportOrder,
  { device, waitMs }: LateDevice,
  endNs: bigint,
): Promise<never> {
  if (waitMs <= BRIEF_MS) throw new Later(waitMs)
  const offsetMs = Number(deviceAheadNs(fleet.get(device), Date.now() - clock.nowMs()) / 1_000_000n)
  const skew = `${secondsText(Math.abs(offsetMs))} ${offsetMs < 0 ? 'behind' : 'ahead of'} ours`
  const end = new Date(Number(endNs / 1_000_000n)).toISOString()
  const detail = `device ${device} does not have all packets before ${end} yet; its clock is ${skew}`
  log.info('export.waiting', { exportId: order.id, device, detail, waitMs })
  await store.change(order, { waiting: { device, detail } }, { states: LIVE_STATES })
  throw new Later(waitMs)
}

interface Reserving extends Measuring {
  readonly asked: AskedPiece
  readonly bytes: bigint
  readonly isExact: boolean
}

/** A filter may leave little of the estimate: then only the space for the spool is known. */
async function reserve(
  parts: ExportParts,
  { record: { order }, windowsAhead, asked: { devices, filled }, bytes, isExact }: Reserving,
): Promise<void> {
  const ahead = BigInt(windowsAhead * devices.length * parts.limits.spanBytes)
  // Files that are being filled exist twice until the new ones are published.
  const files = (isExact ? bytes : 0n) + (filled?.bytes ?? 0n)
  await reserveSpace(parts, order, { files, spool: bytes < ahead ? bytes : ahead })
}

/**
 * Clocks are measured repeatedly: the first measurement counts for all files, and for the manifest. Fails with
 * bad-parameter if the clock of a device that is read is not known, and as the device if it is down.
 */
async function offsetsOf(
  { fleet }: ExportParts,
  { record: { order }, checkpoint: { offsetsNs: known } }: Measuring,
  devices: readonly string[],
): Promise<Checkpoint['offsetsNs']> {
  if (!order.align) return known
  const added = devices.filter((device) => known?.[device] === undefined)
  await fleet.knowClocks(added)
  for (const device of added) {
    const { reachable, error, clock } = fleet.get(device).health.report
    // It may report its clock when it is back.
    if (reachable !== true && clock === undefined && error !== undefined) throw error
  }
  requireKnownClocks(added, (device) => fleet.clockOf(device))
  const offsets = added.map((device) => [device, String(fleet.clockOf(device)?.offsetNs)])
  return { ...known, ...Object.fromEntries(offsets) }
}

/** The device without which the export continues. Throws if it cannot, or not yet. */
async function deviceToLeaveOut(
  parts: ExportParts,
  { record: { order, base } }: Measuring,
  asked: readonly string[],
  error: unknown,
): Promise<string> {
  const named = error instanceof CapfleetError ? error.details.members?.devices : undefined
  const [device] = Array.isArray(named) ? (named as string[]) : []
  if (device === undefined || !asked.includes(device)) throw error
  const failure = await judgeFailure(parts, order, device, error)
  if (order.onMissing === 'fail') throw failure
  // Without its only device, a new export would be empty. One that is being filled keeps its files.
  if (asked.length === 1 && base === undefined) throw failure
  return device
}
