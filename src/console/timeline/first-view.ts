/**
 * The initial time range if the link does not name one: what is being captured, else what was captured last. The
 * oldest packet of a fleet may be months old, and next to it an hour of today would be one pixel.
 */
import { NS_PER_S, nowNs } from '../base/instants.ts'
import type { CaptureSpan } from './capture-spans.ts'
import { askNewest } from './captures.ts'
import { type TimeView, viewAround } from './time-view.ts'

const DAY_NS = 86_400n * NS_PER_S
/** A capture that has just begun would fill the view with a second, and leave it at once. */
const RUNNING_MIN_NS = 900n * NS_PER_S
const LOOKED_AT_MAX = 200

export async function askFirstView(signal: AbortSignal): Promise<TimeView> {
  const dayAgoNs = nowNs() - DAY_NS
  const recent = await askNewest({ fromNs: dayAgoNs, limit: LOOKED_AT_MAX }, signal)
  return firstView(recent.length > 0 ? recent : await askNewest({ limit: 1 }, signal), nowNs())
}

/**
 * For captures with the newest first. If some are running: everything they have, at most the last day. Else the newest
 * one. Else the last day.
 */
export function firstView(captures: readonly CaptureSpan[], now: bigint): TimeView {
  const running = captures.filter(({ isActive }) => isActive)
  if (running.length > 0) {
    const beginNs = running.reduce((least, { fromNs }) => (fromNs < least ? fromNs : least), now)
    return viewAround(within(beginNs, now - DAY_NS, now - RUNNING_MIN_NS), now)
  }
  const [newest] = captures
  return newest === undefined ? { fromNs: now - DAY_NS, toNs: now } : viewAround(newest.fromNs, newest.toNs)
}

function within(ns: bigint, least: bigint, most: bigint): bigint {
  return ns < least ? least : ns > most ? most : ns
}
