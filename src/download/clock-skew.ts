/** What the devices' clocks mean for a merge by time. */
import type { Log } from '../base/log.ts'
import type { DeviceClock } from './merge-request.ts'

/** Above it, the order of packets of different devices says little. */
const SKEW_WARN_NS = 1_000_000n

/** What Align subtracts: whole units of the file, so that every timestamp moves by the same. */
export function alignmentOf(clock: DeviceClock | undefined, resolution: 'nsec' | 'usec'): bigint | undefined {
  if (clock === undefined || resolution === 'nsec') return clock?.offsetNs
  return clock.offsetNs - (clock.offsetNs % 1_000n)
}

/** `Capfleet-Skew-Ns: rome=120+-40000, oslo=-77+-52000`; nothing when no clock is known. */
export function skewHeader(clocks: ReadonlyMap<string, DeviceClock>): Readonly<Record<string, string>> {
  if (clocks.size === 0) return {}
  const entries = [...clocks].map(([device, { offsetNs, errorNs }]) => `${device}=${offsetNs}+-${errorNs}`)
  return { 'Capfleet-Skew-Ns': entries.join(', ') }
}

/** Names the devices whose clocks are known to be off by more than a millisecond. */
export function warnOfSkew(clocks: ReadonlyMap<string, DeviceClock>, log: Log): void {
  for (const [device, { offsetNs, errorNs }] of clocks) {
    const surelyNs = (offsetNs < 0n ? -offsetNs : offsetNs) - errorNs
    if (surelyNs > SKEW_WARN_NS)
      log.warn('merge.clock-skew', { device, offsetNs: String(offsetNs), errorNs: String(errorNs) })
  }
}
