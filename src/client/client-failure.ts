import { ERROR_KINDS } from '../shared/base/error.ts'

/** Kinds of failures, by what the caller can do about them. */
export type FailureKind = 'usage' | 'access' | 'not-found' | 'busy' | 'device' | 'incomplete' | 'disk-full'

interface FailureFacts {
  /** A stable code: that of the gateway's problem, or one of the client's own. */
  readonly code: string
  /** The parameter at fault. */
  readonly param?: string | undefined
  /** When to try again. */
  readonly retryAfterS?: number | undefined
  /** Whether the same request can succeed later. */
  readonly canRetry?: boolean
  /** Whether no gateway has accepted the request and one may do so in a moment: a gateway is being replaced. */
  readonly isUntaken?: boolean
  /** The export that an Idempotency-Key was used for. */
  readonly exportId?: string | undefined
  /** The position in the queue when the wait ended. */
  readonly position?: number | undefined
  readonly cause?: unknown
}

/** A failure to show to the caller: reported by the gateway, or met on the way to it. */
export class ClientFailure extends Error {
  readonly kind: FailureKind
  readonly facts: FailureFacts

  constructor(kind: FailureKind, message: string, facts: FailureFacts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.name = 'ClientFailure'
    this.kind = kind
    this.facts = facts
  }

  get code(): string {
    return this.facts.code
  }

  get canRetry(): boolean {
    return this.facts.canRetry ?? false
  }
}

/** A mistake in the request itself, detected before a gateway was asked. */
export function usageFailure(message: string): ClientFailure {
  return new ClientFailure('usage', message, { code: 'usage' })
}

const ACCESS_CODES: ReadonlySet<string> = new Set(['too-many-logins', 'unauthenticated'])
const BUSY_CODES: ReadonlySet<string> = new Set([
  'queue-timeout',
  'download-slots-exhausted',
  'compiler-busy',
])

/** The kind of an error with this status. */
export function failureKindOf(status: number, code: string): FailureKind {
  if (status === 401 || status === 403 || ACCESS_CODES.has(code)) return 'access'
  if (code === 'download-cancelled') return 'incomplete'
  if (status === 404 || status === 410) return 'not-found'
  if (status === 429 || BUSY_CODES.has(code)) return 'busy'
  return status >= 500 ? 'device' : 'usage'
}

/** http-503: from a proxy for which no gateway is ready. */
const UNTAKEN_CODES: ReadonlySet<string> = new Set(['draining', 'http-503'])

/** The failure described by an answer other than 2xx. `text` is its body, which may come from a proxy. */
export function problemFailure(status: number, headers: Headers, text: string): ClientFailure {
  const problem = parseProblem(text)
  const code = typeof problem.code === 'string' ? problem.code : `http-${status}`
  const retryAfterS = Number(headers.get('retry-after') ?? Number.NaN)
  return new ClientFailure(failureKindOf(status, code), detailOf(problem, status, headers), {
    code,
    param: textOf(problem.param),
    exportId: textOf(problem.exportId),
    position: typeof problem.position === 'number' ? problem.position : undefined,
    canRetry: canRetry(status, code),
    isUntaken: UNTAKEN_CODES.has(code),
    ...(Number.isFinite(retryAfterS) ? { retryAfterS } : {}),
  })
}

function detailOf(problem: Record<string, unknown>, status: number, headers: Headers): string {
  const detail = textOf(problem.detail)
  if (detail !== undefined) return detail
  const place = headers.get('location')
  if (place !== null) return `the address redirects to ${place} (status ${status}); use that address`
  return `the server at this address is not a capfleet gateway, or is not working (status ${status})`
}

/** A gateway that is newer than this program may use other codes. */
function canRetry(status: number, code: string): boolean {
  return code in ERROR_KINDS ? ERROR_KINDS[code as keyof typeof ERROR_KINDS].retry : status >= 502
}

function parseProblem(text: string): Record<string, unknown> {
  try {
    const problem: unknown = JSON.parse(text)
    return typeof problem === 'object' && problem !== null ? (problem as Record<string, unknown>) : {}
  } catch {
    // A proxy's answer has a format of its own.
    return {}
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
