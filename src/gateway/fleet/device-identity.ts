/** Identifies the appliance that answers under the name of a device. */
import type { TimeLimit } from '../device/device-client.ts'
import type { DeviceKind } from '../device/device-kind.ts'
import type { FleetMember } from './fleet.ts'
import { probeStatus } from './health/device-probe.ts'

/** Plain JSON. */
export interface DeviceIdentity {
  readonly url: string
  /** The serial number in the device's status; null if it reports none, or could not be asked. */
  readonly serial: string | null
}

/** Facts that may change when the device is restarted, updated or replaced; undefined if not known yet. */
export interface DeviceState {
  /** When probes saw it come or go (Unix time in milliseconds). */
  readonly sinceMs: number | undefined
  /** DeviceBreaker.outages. */
  readonly outages: number | undefined
  readonly kind: DeviceKind | undefined
  readonly version: string | undefined
  readonly serial: string | undefined
}

/** The state of a device without health checks, such as one that is tested once. */
export const UNKNOWN_STATE: DeviceState = {
  sinceMs: undefined,
  outages: undefined,
  kind: undefined,
  version: undefined,
  serial: undefined,
}

export function stateOf({
  health: { report },
  breaker,
}: Pick<FleetMember, 'health' | 'breaker'>): DeviceState {
  const { kind, version, serial, since } = report
  return { sinceMs: since?.getTime(), outages: breaker.outages, kind, version, serial }
}

/**
 * The facts that are known about the device now; undefined if it has changed and may behave differently. Learning a
 * fact for the first time is not a change.
 */
export function ifUnchanged(before: DeviceState, now: DeviceState): DeviceState | undefined {
  const isSame = STATE.every(
    (name) => before[name] === undefined || now[name] === undefined || before[name] === now[name],
  )
  if (!isSame) return undefined
  const known = STATE.map((name) => [name, now[name] ?? before[name]] as const)
  return Object.fromEntries(known) as unknown as DeviceState
}

const STATE = ['sinceMs', 'outages', 'kind', 'version', 'serial'] as const

/** According to the last probe. */
export function identityOf({ device, health }: FleetMember): DeviceIdentity {
  return { url: device.url.href, serial: health.report.serial ?? null }
}

/**
 * Whether the device is still the same one. If its serial number was known, it is asked for it; for a device without
 * one the URL decides. Fails like DeviceClient.getJson.
 */
export async function isSameDevice(
  known: DeviceIdentity,
  { device, client, breaker }: FleetMember,
  limit: TimeLimit,
): Promise<boolean> {
  const isSameUrl = device.url.href === known.url
  if (known.serial === null) return isSameUrl
  const { serial } = await breaker.run(() => probeStatus(client, limit))
  return serial === undefined ? isSameUrl : serial === known.serial
}
