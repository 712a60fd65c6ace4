import { CapfleetError } from '../../shared/base/error.ts'
import { nearestNames } from '../../shared/query/nearest-names.ts'
import { discoveryPending } from './discovery-pending.ts'

interface KnownDevices {
  readonly devices: readonly { readonly name: string }[]
  readonly isComplete: boolean
}

/** The error for a name that the fleet does not have, or not yet. */
export function notInFleet({ devices, isComplete }: KnownDevices, wanted: string): CapfleetError {
  if (!isComplete) return discoveryPending()
  return unknownDevice(
    wanted,
    devices.map(({ name }) => name),
    'device',
  )
}

/** The error for a name that matches no device (or site) in `names`. `param` is the parameter at fault. */
export function unknownDevice(wanted: string, names: readonly string[], param: string): CapfleetError {
  const near = nearestNames(wanted, names)
  const hint = near.length === 0 ? 'GET /v1/devices lists them' : `did you mean ${near.join(', ')}?`
  const shown = JSON.stringify(wanted.slice(0, 80))
  return new CapfleetError('unknown-device', `no device matches ${shown}; ${hint}`, {
    param,
    members: { candidates: near },
  })
}
