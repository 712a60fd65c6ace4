/** What went wrong with a device, as an error of ours that names it. */
import { CapfleetError } from '../base/error.ts'

const TIMEOUT_CODES = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'ETIMEDOUT',
])
const PROTOCOL_CODES = /^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES|UND_ERR_RESPONSE|UND_ERR_INVALID)/
/** How undici calls an interim answer that it has no use for, such as 100 and 101. */
const UNASKED_ANSWER = /^bad (response|upgrade)$/

/** An error of the HTTP client. An error that is ours already (a reason to abort) passes unchanged. */
export function deviceFailure(device: string, error: unknown): CapfleetError {
  if (error instanceof CapfleetError) return error
  const code = codeOf(error)
  const options = { cause: error, members: { devices: [device] } }
  if (TIMEOUT_CODES.has(code)) {
    return new CapfleetError('device-timeout', `device ${device} did not answer in time`, options)
  }
  const text = error instanceof Error ? error.message : String(error)
  if (PROTOCOL_CODES.test(code) || UNASKED_ANSWER.test(text))
    return deviceProtocol(device, `broke the HTTP protocol (${text})`, error)
  return new CapfleetError('device-unreachable', `device ${device} cannot be reached (${text})`, options)
}

/** The device did something that the API does not allow; `what` continues "device X ...". */
export function deviceProtocol(device: string, what: string, cause?: unknown): CapfleetError {
  return new CapfleetError('device-protocol', `device ${device} ${what}`, {
    members: { devices: [device] },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The device ended its answer before its end. */
export function deviceBrokeOff(device: string): CapfleetError {
  return new CapfleetError('device-unreachable', `device ${device} closed the connection inside its answer`, {
    members: { devices: [device] },
  })
}

/** The head of the device's answer was not whole in time, however many bytes of it came. */
export function deviceHeadLate(device: string, limitMs: number): CapfleetError {
  return new CapfleetError(
    'device-timeout',
    `device ${device} did not begin to answer within ${limitMs / 1_000} s`,
    { members: { devices: [device] } },
  )
}

/** The device let all of `limitMs` pass without a byte. */
export function deviceSilent(device: string, limitMs: number): CapfleetError {
  return new CapfleetError('device-timeout', `device ${device} sent nothing for ${limitMs / 1_000} s`, {
    members: { devices: [device] },
  })
}

function codeOf(error: unknown): string {
  const own = (error as { code?: unknown } | null)?.code
  return typeof own === 'string' ? own : ''
}
