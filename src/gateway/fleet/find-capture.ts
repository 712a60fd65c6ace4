import { CapfleetError } from '../../shared/base/error.ts'
import { isAskedName } from '../../shared/query/capture-name-rule.ts'
import { nearestNames } from '../../shared/query/nearest-names.ts'
import type { UnreachableDevice } from './ask-members.ts'
import type { Holding } from './device-captures.ts'

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
    `the capture ${name} is on several devices (${holders.join(', ')}); choose one with Device=`,
    { param: 'StreamName', members: { candidates: holders } },
  )
}

/** Maximum number of devices named in a message. */
const NAMED_MAX = 8

/**
 * Reports that the capture is on none of the devices that answered, and which did not answer. REQUIRES: at least one
 * did not.
 */
export function holderUnknown(name: string, unreachable: readonly UnreachableDevice[]): CapfleetError {
  const [first] = unreachable
  if (first === undefined) throw new Error('all devices have answered')
  const devices = unreachable.map(({ device }) => device)
  const more = devices.length > NAMED_MAX ? ` and ${devices.length - NAMED_MAX} more` : ''
  const named = `${devices.slice(0, NAMED_MAX).join(', ')}${more}`
  const { code, message, details } = first.error
  return new CapfleetError(
    code,
    `no device that answered has a capture ${name}; it is unknown whether ${named} ${devices.length === 1 ? 'has' : 'have'} it: ${message}`,
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
