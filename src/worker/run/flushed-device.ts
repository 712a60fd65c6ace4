/**
 * Determines when a device has all packets of a time range: recently captured ones may still be in its memory, and a
 * range that ends now would silently lack them.
 */
import { ANSWER_BYTES_MAX } from '../../gateway/device/device-client.ts'
import { deviceLate } from '../../gateway/device/device-failure.ts'
import type { FleetMember } from '../../gateway/fleet/fleet.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import { TIME_LIMIT_NS } from '../../shared/query/time/query-time.ts'

export interface FlushQuestion {
  /** The end of the time range. */
  readonly endNs: bigint
  /** The shared time. */
  readonly nowMs: number
  /** How far the clock of this host is ahead of it. */
  readonly hostAheadMs: number
  /** If the end is longer ago than this, the device is not asked. */
  readonly recentMs: number
  /** How long the device may take to answer. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** The wait for a device that does not report its progress: longer than our appliance needs. */
const SETTLING_MS = 5_000
/** Our appliance needs about 2 s; one that takes this long has a problem. */
const PATIENCE_MS = 30_000
const ASK_AGAIN_MS = 500
/** A clock may be set meanwhile. */
const LOOK_AGAIN_MS = 600_000

/**
 * How long to wait before asking the device again whether it has all packets before `endNs`; 0: it has them. Fails
 * with device-timeout, which names the device, if it should have had them long ago.
 */
export async function flushWaitMs(member: FleetMember, question: FlushQuestion): Promise<number> {
  const { endNs, nowMs, hostAheadMs, recentMs } = question
  // An unlimited range has no end to wait for.
  if (endNs >= TIME_LIMIT_NS) return 0
  const clockNs = BigInt(Math.round(nowMs)) * NS_PER_MS + deviceAheadNs(member, hostAheadMs)
  const sinceMs = Number((clockNs - endNs) / NS_PER_MS)
  if (sinceMs < 0) return Math.min(1 - sinceMs, LOOK_AGAIN_MS)
  if (sinceMs > recentMs) return 0
  const capture = await askCapture(member, question)
  if (capture === undefined) return Math.max(0, SETTLING_MS - sinceMs)
  if (!capture.isRunning || capture.flushedNs >= endNs) return 0
  if (sinceMs <= PATIENCE_MS) return ASK_AGAIN_MS
  throw deviceLate(member.device.name, `write what it captured before ${endNs} ns to its disk`, sinceMs)
}

/**
 * How far the clock of a device is ahead of the shared time, even if the clock of this host was set since the probe.
 */
export function deviceAheadNs({ health }: FleetMember, hostAheadMs: number): bigint {
  const { clock } = health.report
  if (clock === undefined) return 0n
  const hostSetMs = Date.now() - performance.now() - health.clockBasisMs
  return clock.offsetNs + BigInt(Math.round(hostAheadMs - hostSetMs)) * NS_PER_MS
}

const NS_PER_MS = 1_000_000n

interface RunningCapture {
  readonly isRunning: boolean
  readonly flushedNs: bigint
}

/** Returns undefined if the device does not report it. Whether it can be read at all shows when it is read. */
async function askCapture(
  { client, breaker }: FleetMember,
  { timeoutMs, signal }: FlushQuestion,
): Promise<RunningCapture | undefined> {
  try {
    const asking = { bytesMax: ANSWER_BYTES_MAX.status, timeoutMs, signal }
    const answer = await breaker.run(() => client.getJson('/sysmaster/capture_status', asking))
    const { CaptureEnable, State, FlushedTS } = (answer ?? {}) as Record<string, unknown>
    if (!isNanoseconds(FlushedTS)) return undefined
    return {
      // A capture that is being stopped still flushes what is in its memory.
      isRunning: CaptureEnable === 'true' || State === 'stopping',
      flushedNs: BigInt(FlushedTS),
    }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof CapfleetError)) throw error
    return undefined
  }
}

function isNanoseconds(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,20}$/.test(value)
}
