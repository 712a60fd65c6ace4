/**
 * Converts a device's refusal into one of our errors. A device is not trusted: only known members of the right type
 * are taken from its problem body, limited in size, and only those codes that can be true of a device's answer to a
 * caller's request. So no device can log a caller out (401) or make the gateway appear to say something else.
 */
import { CapfleetError, ERROR_KINDS, type ErrorCode } from '../../shared/base/error.ts'

/** An answer other than 200, as received. */
export interface RefusedAnswer {
  readonly status: number
  /** Path that was requested, without the query. */
  readonly path?: string | undefined
  /** The device's header WWW-Authenticate. */
  readonly wants?: string | undefined
  /** The device's header Retry-After, as it sent it. */
  readonly retryAfter?: string | undefined
  /** The part of the body that was read, or undefined for an answer to HEAD, which has none. */
  readonly body: string | undefined
  /** Set for a download: a status that means "not now" then means that the device has no free stream. */
  readonly download?: { readonly namesCapture: boolean } | undefined
  /** Whether the device was asked without the gateway's credentials, on behalf of someone who has none. */
  readonly isAnonymous?: boolean
}

/** A refusal, and the device's words that are for the log only. */
export interface DeviceRefusal {
  readonly error: CapfleetError
  readonly hiddenText: string | undefined
}

/** Errors that the caller can fix or wait out; they are reported in the device's own words. */
const CALLERS_CODES: ReadonlySet<ErrorCode> = new Set([
  'bad-parameter',
  'bad-bpf',
  'bad-frame-filter',
  'bad-regex',
  'bad-timezone',
  'ambiguous-timezone',
  'not-found',
  'unknown-capture',
  'capture-running',
  'capture-not-running',
  'capture-scheduled',
  'capture-active',
  'capture-exists',
  'capture-in-use',
  'mixed-link-type',
  'aged-out',
  'download-slots-exhausted',
  'event-streams-exhausted',
  'compiler-busy',
])

/**
 * Errors about the state of the device itself. Its text may contain paths and names of its machine, so it is only
 * logged.
 */
const DEVICES_CODES: ReadonlySet<ErrorCode> = new Set([
  'capture-unavailable',
  'store-corrupt',
  'store-unavailable',
  'store-full',
])

/**
 * The error that the answer means. A code is accepted only with the status it has in our table; everything else
 * becomes device-rejected (our credentials), unauthenticated (no credentials) or device-protocol.
 */
export function deviceRefusal(device: string, answer: RefusedAnswer): DeviceRefusal {
  const { status } = answer
  const problem = parseProblem(answer)
  const { code, text } = problem
  if ((status === 401 || status === 403) && answer.isAnonymous === true) {
    const message = `device ${device} answers this only for authenticated users; send HTTP Basic credentials of the gateway`
    return hidden(new CapfleetError('unauthenticated', message, { members: { devices: [device] } }), text)
  }
  if (status === 401 || status === 403) {
    const message = `device ${device} rejected the gateway's credentials (status ${status}); ${loginAdvice(answer)}`
    return hidden(new CapfleetError('device-rejected', message, { members: { devices: [device] } }), text)
  }
  const retryAfterS = secondsOf(answer.retryAfter)
  if (code === undefined && answer.download !== undefined && BUSY_STATUSES.has(status)) {
    const message = `device ${device} is busy (status ${status})`
    const members = { devices: [device], deviceStatus: status }
    return hidden(new CapfleetError('download-slots-exhausted', message, { retryAfterS, members }), text)
  }
  const ownWords = answer.download !== undefined && code === undefined ? wordsOf(answer.body) : undefined
  const callersCode = wordedCode(answer)
  if (ownWords !== undefined && callersCode !== undefined) {
    const members = { devices: [device], deviceStatus: status }
    const message = `device ${device} rejected the download (status ${status}): ${ownWords}`
    return { error: new CapfleetError(callersCode, message, { members }), hiddenText: undefined }
  }
  if (code === undefined || ERROR_KINDS[code].status !== status) {
    const members = { devices: [device], deviceStatus: status }
    const where = answer.path === undefined ? '' : ` ${answer.path}`
    const message = `device ${device} answered${where} with status ${status}${REDIRECTS.has(status) ? REDIRECTED : ''}`
    return hidden(new CapfleetError('device-protocol', message, { members }), text)
  }
  const { title } = ERROR_KINDS[code]
  if (DEVICES_CODES.has(code)) {
    const members = { devices: [device] }
    return hidden(new CapfleetError(code, `device ${device}: ${title}`, { retryAfterS, members }), text)
  }
  const { param, position } = problem
  const members = { ...problem.members, devices: [device] }
  const error = new CapfleetError(code, text ?? title, { param, position, retryAfterS, members })
  return { error, hiddenText: undefined }
}

/**
 * The code for a third-party device's refusal of a download that the caller can fix. A 404 without a capture is about
 * the path.
 */
function wordedCode({ status, download }: RefusedAnswer): ErrorCode | undefined {
  if (status === 400) return 'bad-parameter'
  return status === 404 && download?.namesCapture === true ? 'unknown-capture' : undefined
}

const WORDS_MAX = 200

/** The text of a refusal as one line, or undefined for markup and JSON, which are no use to a caller here. */
function wordsOf(body: string | undefined): string | undefined {
  return body === undefined || /^\s*[<{[]/.test(body) ? undefined : plainText(body, WORDS_MAX)
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const REDIRECTED = '; redirects are not followed: configure the address that the device answers at'

function loginAdvice({ wants = '' }: RefusedAnswer): string {
  const [scheme] = /^[A-Za-z][A-Za-z0-9-]{0,15}/.exec(wants) ?? []
  if (scheme === undefined || /\b(basic|bearer)\b/i.test(wants))
    return "check user, password and role in the gateway's configuration"
  return `it requires ${scheme}, but the gateway can only log in with Basic or a token`
}

/** Too Many Requests and Service Unavailable: a third-party device has no code for its limit. */
const BUSY_STATUSES: ReadonlySet<number> = new Set([429, 503])

function hidden(error: CapfleetError, hiddenText: string | undefined): DeviceRefusal {
  return { error, hiddenText }
}

interface Problem {
  readonly code?: ErrorCode | undefined
  readonly text?: string | undefined
  readonly param?: string | undefined
  readonly position?: number | undefined
  readonly members?: Readonly<Record<string, unknown>>
}

const TEXT_MAX = 1_024
const NAME_MAX = 128
const NAMES_MAX = 16
const PARAMETER = /^[A-Za-z][A-Za-z0-9_]{0,63}$/

/** Refusals of a download that a caller can fix, by status. */
const HEAD_CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'bad-parameter',
  404: 'unknown-capture',
  409: 'mixed-link-type',
  410: 'aged-out',
  503: 'compiler-busy',
}

function parseProblem({ status, body }: RefusedAnswer): Problem {
  // A HEAD request gets no text either.
  if (body === undefined) return { code: HEAD_CODES[status] }
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return {}
  }
  if (typeof parsed !== 'object' || parsed === null) return {}
  const { code, detail, param, position, ...rest } = parsed as Record<string, unknown>
  return {
    code: isCodeOfDevice(code) ? code : undefined,
    text: plainText(detail, TEXT_MAX),
    param: typeof param === 'string' && PARAMETER.test(param) ? param : undefined,
    position: isCount(position) ? position : undefined,
    members: knownMembers(rest),
  }
}

/** Whether an answer of a device may have this code. */
export function isCodeOfDevice(code: unknown): code is ErrorCode {
  return CALLERS_CODES.has(code as ErrorCode) || DEVICES_CODES.has(code as ErrorCode)
}

/** The details that API errors carry besides their text. */
function knownMembers(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { readers, oldestNs, candidates, linkTypes } = members
  const known: Record<string, unknown> = {}
  for (const name of ['StreamName', 'ScheduleName']) known[name] = plainText(members[name], NAME_MAX)
  if (isCount(readers)) known.readers = readers
  if (typeof oldestNs === 'string' && /^\d{1,20}$/.test(oldestNs)) known.oldestNs = oldestNs
  if (Array.isArray(candidates)) known.candidates = namesOf(candidates)
  if (Array.isArray(linkTypes)) known.linkTypes = linkTypes.slice(0, NAMES_MAX).flatMap(linkTypeOf)
  return known
}

function namesOf(names: readonly unknown[]): string[] {
  return names.slice(0, NAMES_MAX).flatMap((name) => plainText(name, NAME_MAX) ?? [])
}

/** One of the types of mixed-link-type, with the captures that have it; empty if it is malformed. */
function linkTypeOf(entry: unknown): Record<string, unknown>[] {
  const { linkType, name, captures } = (entry ?? {}) as Record<string, unknown>
  if (!isCount(linkType) || !Array.isArray(captures)) return []
  return [{ linkType, name: plainText(name, NAME_MAX), captures: namesOf(captures) }]
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

const RETRY_MOST_S = 600

function secondsOf(retryAfter: string | undefined): number | undefined {
  if (retryAfter === undefined || !/^\d{1,9}$/.test(retryAfter)) return undefined
  return Math.min(Math.max(1, Number(retryAfter)), RETRY_MOST_S)
}

/**
 * A device's text as one line without control characters, truncated to `lengthMax` characters; undefined for anything
 * else, and for an empty text. A terminal or log shows the result exactly as it is.
 */
export function plainText(value: unknown, lengthMax: number): string | undefined {
  if (typeof value !== 'string') return undefined
  const line = value.slice(0, lengthMax).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
  const text = line.toWellFormed().trim()
  return text === '' ? undefined : text
}
