/** Resolves a selection to devices of the fleet, where all of them must be known. */
import { CapfleetError } from '../../shared/base/error.ts'
import type { Device } from '../device/device.ts'
import { discoveryPending } from './discovery-pending.ts'
import { selectDevices, wordsOf } from './select-devices.ts'
import type { FleetView } from './visible-fleet.ts'

type KnownFleet = Pick<FleetView, 'devices' | 'isComplete'>

/**
 * Like selectDevices. Until each discovery has answered, only names of known devices select everything that they mean.
 * Fails with discovery-pending, too.
 */
export function chooseDevices(
  fleet: KnownFleet,
  selection: string | undefined,
  param?: string,
): readonly Device[] {
  if (!fleet.isComplete && !namesKnown(fleet.devices, selection)) throw discoveryPending()
  return selectDevices(fleet.devices, selection, param)
}

/**
 * chooseDevices for requests that read packets: a result from no device must not look like an answer. Fails with
 * no-device, too.
 */
export function chooseSources(
  fleet: KnownFleet,
  selection: string | undefined,
  param?: string,
): readonly Device[] {
  const devices = chooseDevices(fleet, selection, param)
  if (devices.length > 0) return devices
  throw new CapfleetError(
    'no-device',
    'there is no device to read from: the fleet has no devices yet, or none of them is within your bounds',
    { retryAfterS: RETRY_AFTER_S },
  )
}

/** A newly installed device is found within seconds. */
const RETRY_AFTER_S = 10

function namesKnown(devices: readonly Device[], selection: string | undefined): boolean {
  if (selection === undefined) return false
  const names = new Set(devices.map(({ name }) => name))
  return wordsOf(selection).every((word) => names.has(word))
}
