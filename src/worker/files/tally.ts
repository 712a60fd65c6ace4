/** The result per device so far, as it appears in the manifest. */

import type { Checkpoint, DeviceTally, ExportWindow, Hole } from '../../gateway/export/export-record.ts'
import type { SpanOutcome } from '../../gateway/export/spool.ts'
import type { MergedInput } from '../../gateway/pcap/merge.ts'

export interface JoinedWindow {
  readonly window: ExportWindow
  /** The inputs of the spans that have packets. */
  readonly inputs: readonly MergedInput[]
  readonly came: readonly { readonly device: string; readonly outcome: SpanOutcome | undefined }[]
}

/** The checkpoint's counts plus those of one more window. */
export function tallied(
  { devices, fetchedBytes }: Checkpoint,
  joined: JoinedWindow,
): Pick<Checkpoint, 'devices' | 'fetchedBytes'> {
  const fetched = joined.came.reduce(
    (sum, { outcome }) => sum + BigInt(outcome?.bytes ?? 0),
    BigInt(fetchedBytes),
  )
  return { devices: devices.map((tally) => withWindow(tally, joined)), fetchedBytes: String(fetched) }
}

function withWindow(tally: DeviceTally, { window, inputs, came }: JoinedWindow): DeviceTally {
  const input = inputs.find(({ name }) => name === tally.device)
  // Of packets that Dedup has dropped, the times say nothing about the files.
  const kept = input !== undefined && input.packets > 0 ? input : undefined
  const outcome = came.find(({ device }) => device === tally.device)?.outcome
  return {
    ...tally,
    packets: String(BigInt(tally.packets) + BigInt(input?.packets ?? 0)),
    bytes: String(BigInt(tally.bytes) + BigInt(input?.bytes ?? 0)),
    firstNs: extreme(tally.firstNs, kept?.firstNs, (a, b) => a < b),
    lastNs: extreme(tally.lastNs, kept?.lastNs, (a, b) => a > b),
    outOfOrder: tally.outOfOrder + (input?.outOfOrder ?? 0),
    holes: withHoles(tally, window, outcome),
  }
}

function withHoles(
  { device, holes }: DeviceTally,
  window: ExportWindow,
  outcome: SpanOutcome | undefined,
): readonly Hole[] {
  const isLeftOut = window.leftOut.includes(device)
  if (window.isFill !== true)
    return (isLeftOut ? [leftOut(window)] : (outcome?.holes ?? [])).reduce(joinedHoles, holes)
  if (isLeftOut) return holes
  // What was fetched fills the holes, except for what is still missing.
  const left = [...holes.flatMap((hole) => withoutTime(hole, window)), ...(outcome?.holes ?? [])]
  return left.sort((a, b) => (BigInt(a.fromNs) < BigInt(b.fromNs) ? -1 : 1)).reduce(joinedHoles, [])
}

/** The parts of a hole before and after the time of a window. */
function withoutTime(hole: Hole, { beginNs, endNs }: ExportWindow): readonly Hole[] {
  if (hole.final) return [hole]
  const [fromNs, toNs] = [BigInt(hole.fromNs), BigInt(hole.toNs)]
  const [cutBegin, cutEnd] = [BigInt(beginNs), BigInt(endNs)]
  if (cutEnd <= fromNs || cutBegin >= toNs) return [hole]
  return [
    ...(fromNs < cutBegin ? [{ ...hole, toNs: beginNs }] : []),
    ...(cutEnd < toNs ? [{ ...hole, fromNs: endNs }] : []),
  ]
}

/** Whichever of the two is before the other according to `isBefore`. */
export function extreme(
  known: string | null,
  next: bigint | undefined,
  isBefore: (a: bigint, b: bigint) => boolean,
): string | null {
  if (next === undefined) return known
  return known === null || isBefore(next, BigInt(known)) ? String(next) : known
}

function leftOut({ beginNs, endNs }: ExportWindow): Hole {
  const error = { code: 'device-unreachable', detail: 'the device could not be queried' } as const
  return { fromNs: beginNs, toNs: endNs, final: false, error }
}

/** A hole that continues the previous one is merged with it. */
function joinedHoles(holes: readonly Hole[], next: Hole): readonly Hole[] {
  const last = holes.at(-1)
  const isOne =
    last !== undefined &&
    last.toNs === next.fromNs &&
    last.final === next.final &&
    last.error.code === next.error.code
  return isOne ? [...holes.slice(0, -1), { ...last, toNs: next.toNs }] : [...holes, next]
}
