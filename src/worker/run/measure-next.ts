/**
 * The piece of an order that comes next: measured on all devices that can be read, once they have the packets of its
 * time, and with room kept for it.
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
import { CapfleetError, secondsText } from '../../shared/base/error.ts'
import { judgeFailure } from './device-trouble.ts'
import { reserveSpace } from './export-space.ts'
import { keptOf } from './filled-files.ts'
import { deviceAheadNs, flushWaitMs } from './flushed-device.ts'
import { keptHeader } from './kept-records.ts'
import { measurePiece, type Measuring as PieceMeasuring } from './measure-piece.ts'
import { refuseReplaced } from './same-devices.ts'

export interface Measuring {
  /** As its writer found it. */
  readonly record: ExportRecord
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
        offsetsNs: offsetsOf(parts, measuring),
      }
    } catch (error) {
      leftOut.push(await deviceToLeaveOut(parts, measuring, asked.devices, error))
    }
  }
}

type AskedPiece = Pick<PieceMeasuring, 'query' | 'devices' | 'filled'>

/** What is asked of which devices in the present piece: of files that are filled, what they lack. */
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

/** More than a device that is late is waited for before it counts as one that cannot be read. */
const FLUSH_LATE_MS = 600_000

interface LateDevice {
  readonly device: string
  /** How long to wait before it is asked again. */
  readonly waitMs: number
}

/** The device that is waited for the longest; undefined: all may have their packets up to a time. */
async function latestDevice(
  { fleet, limits, clock }: ExportParts,
  devices: readonly string[],
  { endNs, signal }: { readonly endNs: bigint; readonly signal: AbortSignal },
): Promise<LateDevice | undefined> {
  const question = {
    endNs,
    nowMs: clock.nowMs(),
    hostAheadMs: Date.now() - clock.nowMs(),
    // Until then a device that is late has been given up.
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

/** What is over soon needs no explanation. */
const BRIEF_MS = 1_000

/** Says in the export why it waits. Throws Later. */
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

/** A filter may leave little of what is there: then only the spool is known to need room. */
async function reserve(
  parts: ExportParts,
  { record: { order }, windowsAhead, asked: { devices, filled }, bytes, isExact }: Reserving,
): Promise<void> {
  const ahead = BigInt(windowsAhead * devices.length * parts.limits.spanBytes)
  // Files that are filled are there twice until the new ones are kept.
  const files = (isExact ? bytes : 0n) + (filled?.bytes ?? 0n)
  await reserveSpace(parts, order, { files, spool: bytes < ahead ? bytes : ahead })
}

/** Clocks are measured again and again: the first measure counts for all files, and for the manifest. */
function offsetsOf(
  { fleet }: ExportParts,
  { record: { order, base }, checkpoint: { offsetsNs: known } }: Measuring,
): Checkpoint['offsetsNs'] {
  const { plan, align } = order
  if (!align || (known !== null && base === undefined)) return known
  const offsets = plan.devices.flatMap((device): [string, string][] => {
    const clock = fleet.clockOf(device)
    return clock === undefined ? [] : [[device, String(clock.offsetNs)]]
  })
  return { ...Object.fromEntries(offsets), ...known }
}

/** The device without which the export goes on. Throws when it cannot, or not yet. */
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
  // A new export has nothing without it; one that is filled stays as it is.
  if (asked.length === 1 && base === undefined) throw failure
  return device
}
