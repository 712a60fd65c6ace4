import { CapfleetError } from '../../shared/base/error.ts'

/** A directory that fails at first is retried after a second. */
const RETRY_AFTER_S = 2

/** The error for requests that may concern devices which a discovery has not reported yet. */
export function discoveryPending(): CapfleetError {
  return new CapfleetError(
    'discovery-pending',
    'the list of devices is not known yet: a directory of deviceDiscovery has not answered yet; ' +
      'ask again, or name known devices (Device=)',
    { retryAfterS: RETRY_AFTER_S },
  )
}
