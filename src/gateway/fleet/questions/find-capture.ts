import { CapfleetError } from '../../../shared/base/error.ts'
import { listText } from '../../../shared/base/list-text.ts'
import { isAskedName } from '../../../shared/query/capture-name-rule.ts'
import { nearestNames } from '../../../shared/query/nearest-names.ts'
import type { Holding } from '../captures/device-captures.ts'
import type { UnreachableDevice } from './ask-members.ts'

/** Whether a device holds the capture. */
export interface DeviceHolding {
  readonly device: string
  readonly match: Holding['match']
}

/**
 * The one device that holds the capture `name`: a full name, or a base name that stands for the device's newest.
 * Undefined if none of these devices does. Fails with ambiguous-capture.
 */
export function holderOf(name: string, holdings: readonly DeviceHolding[]): string | undefined {
  const devicesWith = (wanted: Holding['match']) =>
    holdings.filter(({ match }) => match === wanted).map(({ device }) => device)
  const full = devicesWith('full')
  const holders = full.length > 0 ? full : devicesWith('base')
  if (holders.length <= 1) return holders[0]
  throw new CapfleetError(
    'ambiguous-capture',
    `the capture ${name} is on several devices (${listText(holders)}); choose one with Device=`,
    { param: 'StreamName', members: { candidates: holders } },
  )
}

/**
 * Reports that the capture is on none of the devices that answered, and which did not answer. REQUIRES: at least one
 * did not.
 */
export function holderUnknown(name: string, unreachable: readonly UnreachableDevice[]): CapfleetError {
  const [first] = unreachable
  if (first === undefined) throw new Error('all devices have answered')
  const devices = unreachable.map(({ device }) => device)
  const { code, message, details } = first.error
  return new CapfleetError(
    code,
    `no device that answered has a capture ${name}; it is unknown whether ${listText(devices)} ${devices.length === 1 ? 'has' : 'have'} it: ${message}`,
    { param: 'StreamName', retryAfterS: details.retryAfterS, members: { devices }, cause: first.error },
  )
}

/** Reports that no device has the capture; `names` are some that they have. */
export function unknownCapture(name: string, names: readonly string[]): CapfleetError {
  const near = nearestNames(name, names.filter(isAskedName))
  const hint = near.length === 0 ? '/stream/list lists all captures' : `did you mean ${near.join(', ')}?`
  return new CapfleetError('unknown-capture', `no device has a capture ${name}; ${hint}`, {
    param: 'StreamName',
    members: { candidates: near },
  })
}
