/** What went wrong with a device, as an error of ours that names it. */
import { CapfleetError, ERROR_KINDS, type ErrorCode } from '../base/error.ts'

const TIMEOUT_CODES = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'ETIMEDOUT',
])
const PROTOCOL_CODES = /^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES|UND_ERR_RESPONSE|UND_ERR_INVALID)/

/** An error of the HTTP client. An error that is ours already (a reason to abort) passes unchanged. */
export function deviceFailure(device: string, error: unknown): CapfleetError {
  if (error instanceof CapfleetError) return error
  const code = codeOf(error)
  const options = { cause: error, members: { devices: [device] } }
  if (TIMEOUT_CODES.has(code)) {
    return new CapfleetError('device-timeout', `device ${device} did not answer in time`, options)
  }
  const text = error instanceof Error ? error.message : String(error)
  if (PROTOCOL_CODES.test(code)) return deviceProtocol(device, `broke the HTTP protocol (${text})`, error)
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

/** The device let all of `limitMs` pass without a byte. */
export function deviceSilent(device: string, limitMs: number): CapfleetError {
  return new CapfleetError('device-timeout', `device ${device} sent nothing for ${limitMs / 1_000} s`, {
    members: { devices: [device] },
  })
}

/**
 * The error for an answer that is not 200. What the caller can mend (a bad filter, an unknown
 * capture) is passed on with the device's own code and words; `body` is the answer's text.
 */
export function deviceRefusal(device: string, status: number, body: string): CapfleetError {
  const problem = parseProblem(body)
  const said = problem.detail === undefined ? '' : `: ${problem.detail}`
  if (status === 401 || status === 403) {
    return new CapfleetError(
      'device-rejected',
      `device ${device} refused the gateway's credentials (status ${status})${said}; check user, password and role in the gateway's configuration`,
      { members: { devices: [device] } },
    )
  }
  if (problem.code === undefined || status < 400) {
    return new CapfleetError('device-protocol', `device ${device} answered with status ${status}${said}`, {
      members: { devices: [device], deviceStatus: status },
    })
  }
  const { param, position } = problem
  return new CapfleetError(problem.code, problem.detail ?? ERROR_KINDS[problem.code].title, {
    param,
    position,
    members: { ...problem.members, devices: [device] },
  })
}

function codeOf(error: unknown): string {
  const own = (error as { code?: unknown } | null)?.code
  return typeof own === 'string' ? own : ''
}

interface Problem {
  readonly code?: ErrorCode
  readonly detail?: string
  readonly param?: string
  readonly position?: number
  readonly members?: Readonly<Record<string, unknown>>
}

/** Members that the gateway writes itself. */
const OWN_MEMBERS = new Set(['type', 'title', 'status', 'detail', 'code', 'requestId', 'param', 'position'])
const DETAIL_MAX = 2_000

/** A device is not trusted: only members of the right type and a bounded text are taken. */
function parseProblem(body: string): Problem {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return {}
  }
  if (typeof parsed !== 'object' || parsed === null) return {}
  const { code, detail, param, position, ...rest } = parsed as Record<string, unknown>
  const members = Object.entries(rest).filter(
    ([name]) => !OWN_MEMBERS.has(name) && name !== 'Status' && name !== 'Str',
  )
  return {
    ...(typeof code === 'string' && Object.hasOwn(ERROR_KINDS, code) ? { code: code as ErrorCode } : {}),
    ...(typeof detail === 'string' ? { detail: detail.slice(0, DETAIL_MAX) } : {}),
    ...(typeof param === 'string' ? { param } : {}),
    ...(typeof position === 'number' ? { position } : {}),
    members: Object.fromEntries(members),
  }
}
