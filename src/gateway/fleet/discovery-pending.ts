import { CapfleetError } from '../../shared/base/error.ts'

/** A directory that fails at first is asked again after a second. */
const RETRY_AFTER_S = 2

/** The error for whatever may be about devices that a discovery has not told of yet. */
export function discoveryPending(): CapfleetError {
  return new CapfleetError(
    'discovery-pending',
    'the list of devices is not known yet: a directory of deviceDiscovery has not answered yet; ' +
      'ask again, or name known devices (Device=)',
    { retryAfterS: RETRY_AFTER_S },
  )
}
