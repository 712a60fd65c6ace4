/** Identifies the appliance that answers under the name of a device. */
import type { TimeLimit } from '../../device/device-client.ts'
import type { FleetMember } from '../fleet.ts'
import { probeStatus } from './device-probe.ts'

/** Plain JSON. */
export interface DeviceIdentity {
  readonly url: string
  /** What the device reports in its status; null: it reports nothing, or could not be asked. */
  readonly serial: string | null
}

/** As far as probes know it. */
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
