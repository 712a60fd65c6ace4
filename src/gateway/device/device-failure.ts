/** Errors that say what went wrong with a device, and name it. */
import { certificateTrouble } from '../../shared/base/certificate-trouble.ts'
import { CapfleetError, secondsText } from '../../shared/base/error.ts'

/** Codes of errors from Node's HTTP parser. */
const PROTOCOL_CODES = /^HPE_/

/**
 * Maps an error of a connection, or of Node's HTTP client. Our own errors (a reason to abort) are returned unchanged.
 */
export function deviceFailure(device: string, error: unknown): CapfleetError {
  if (error instanceof CapfleetError) return error
  const code = codeOf(error)
  const options = { cause: error, members: { devices: [device] } }
  if (code === 'ETIMEDOUT')
    return new CapfleetError('device-timeout', `device ${device} did not answer in time`, options)
  const text = error instanceof Error ? error.message : String(error)
  if (PROTOCOL_CODES.test(code)) return deviceProtocol(device, `broke the HTTP protocol (${text})`, error)
  return new CapfleetError('device-unreachable', `device ${device} ${whyUnreachable(error, text)}`, options)
}

function whyUnreachable(error: unknown, text: string): string {
  const trouble = certificateTrouble(error)
  if (trouble === undefined) return `cannot be reached (${text})`
  return trouble.whose === 'theirs'
    ? `shows a certificate that is not trusted (${trouble.reason}); ca of the device names the accepted authorities`
    : `does not accept the gateway's certificate, or received none (${trouble.reason}); check cert and key of the device`
}

/** The device violated the API; `what` continues "device X ...". */
export function deviceProtocol(device: string, what: string, cause?: unknown): CapfleetError {
  return new CapfleetError('device-protocol', `device ${device} ${what}`, {
    members: { devices: [device] },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The device is no longer in its directory. */
export function deviceVanished(device: string, since: Date): CapfleetError {
  const sinceText = since.toISOString()
  return new CapfleetError(
    'device-unreachable',
    `device ${device} is not used: its directory has not listed it since ${sinceText}`,
    { members: { devices: [device], since: sinceText } },
  )
}

/** A different appliance answers under the name of the device. */
export function deviceReplaced(device: string): CapfleetError {
  return new CapfleetError(
    'device-replaced',
    `device ${device} is now a different appliance than when this was ordered, with different packets; bring the former one back, or place the order again`,
    { members: { devices: [device] } },
  )
}

/** The device broke off its answer. */
export function deviceBrokeOff(device: string): CapfleetError {
  return new CapfleetError(
    'device-unreachable',
    `device ${device} closed the connection before the end of its answer`,
    {
      members: { devices: [device] },
    },
  )
}

/** The device exceeded `limitMs`; `what` continues "device X did not ...". */
export function deviceLate(device: string, what: string, limitMs: number): CapfleetError {
  return new CapfleetError(
    'device-timeout',
    `device ${device} did not ${what} within ${secondsText(limitMs)}`,
    {
      members: { devices: [device] },
    },
  )
}

function codeOf(error: unknown): string {
  const own = (error as { code?: unknown } | null)?.code
  return typeof own === 'string' ? own : ''
}
