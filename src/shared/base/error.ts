/**
 * Every failure that a caller can see, by stable code. The table is the contract
 * (docs/reference/errors.md is tested against it); codes are never renamed. http-app.ts turns a CapfleetError into
 * an RFC 9457 problem body, the command line prints its message.
 */
interface ErrorKind {
  /** HTTP status of the answer, if no byte of a body has been sent. */
  readonly status: number
  readonly title: string
  /** Whether the same request can succeed later without a change by the caller. */
  readonly retry: boolean
  readonly blame: Blame
}

/**
 * Who is to blame for an error. `caller`: the request, or the load of several callers. `device`: a device that the
 * gateway asked. `ours`: the program that answers, its machine or its configuration.
 */
export type Blame = 'caller' | 'device' | 'ours'

export const ERROR_KINDS = {
  'bad-parameter': {
    status: 400,
    title: 'A parameter is missing, malformed or out of range',
    retry: false,
    blame: 'caller',
  },
  'bad-bpf': { status: 400, title: 'FilterBPF does not compile', retry: false, blame: 'caller' },
  'bad-frame-filter': { status: 400, title: 'FilterFrame does not parse', retry: false, blame: 'caller' },
  'bad-regex': { status: 400, title: 'FilterRE does not compile', retry: false, blame: 'caller' },
  'bad-timezone': { status: 400, title: 'TSZone is not a known time zone', retry: false, blame: 'caller' },
  'range-unsupported': {
    status: 400,
    title: 'A download cannot be resumed with Range',
    retry: false,
    blame: 'caller',
  },
  'ambiguous-timezone': {
    status: 400,
    title: 'TSZone matches several time zones',
    retry: false,
    blame: 'caller',
  },
  'bad-capture-file': {
    status: 400,
    title: 'The input is not a capture file',
    retry: false,
    blame: 'caller',
  },
  unauthenticated: { status: 401, title: 'Credentials are missing or wrong', retry: false, blame: 'caller' },
  'out-of-bounds': {
    status: 403,
    title: 'Outside what the caller may access',
    retry: false,
    blame: 'caller',
  },
  'insufficient-scope': { status: 403, title: 'The user may not do this', retry: false, blame: 'caller' },
  'cross-site': {
    status: 403,
    title: 'A web page from another site may not change state',
    retry: false,
    blame: 'caller',
  },
  'not-found': { status: 404, title: 'No such path', retry: false, blame: 'caller' },
  'unknown-capture': { status: 404, title: 'No capture has this name', retry: false, blame: 'caller' },
  'unknown-device': { status: 404, title: 'No device has this name', retry: false, blame: 'caller' },
  'unknown-request': {
    status: 404,
    title: 'No request in the last 24 hours has this id',
    retry: false,
    blame: 'caller',
  },
  'unknown-export': { status: 404, title: 'No export has this id', retry: false, blame: 'caller' },
  'bad-ticket': {
    status: 403,
    title: 'The link has been used, has expired or was altered',
    retry: false,
    blame: 'caller',
  },
  'unknown-token': { status: 404, title: 'No token has this id', retry: false, blame: 'caller' },
  'unknown-schedule': { status: 404, title: 'No schedule has this id', retry: false, blame: 'caller' },
  'method-not-allowed': {
    status: 405,
    title: 'The path does not support this method',
    retry: false,
    blame: 'caller',
  },
  'ambiguous-capture': {
    status: 409,
    title: 'Several devices have a capture with this name',
    retry: false,
    blame: 'caller',
  },
  'capture-running': { status: 409, title: 'A capture is already running', retry: true, blame: 'caller' },
  'capture-not-running': { status: 409, title: 'No capture is running', retry: false, blame: 'caller' },
  'capture-scheduled': {
    status: 409,
    title: 'The running capture follows a schedule',
    retry: false,
    blame: 'caller',
  },
  'capture-active': { status: 409, title: 'The capture is being recorded', retry: true, blame: 'caller' },
  'capture-exists': {
    status: 409,
    title: 'A capture with this name already exists',
    retry: false,
    blame: 'caller',
  },
  'capture-in-use': { status: 409, title: 'The capture is being downloaded', retry: true, blame: 'caller' },
  'client-timeout': {
    status: 408,
    title: 'The client read or sent nothing for too long',
    retry: true,
    blame: 'caller',
  },
  'mixed-link-type': {
    status: 409,
    title: 'One PCAP cannot contain several link types',
    retry: false,
    blame: 'caller',
  },
  'export-unfinished': {
    status: 409,
    title: 'The export has no file yet, or never will',
    retry: true,
    blame: 'caller',
  },
  'download-cancelled': {
    status: 409,
    title: 'The download was cancelled in the queue',
    retry: false,
    blame: 'caller',
  },
  'part-of-export': {
    status: 409,
    title: 'The request belongs to an export',
    retry: false,
    blame: 'caller',
  },
  'idempotency-conflict': {
    status: 409,
    title: 'The Idempotency-Key was used for a different order',
    retry: false,
    blame: 'caller',
  },
  'aged-out': { status: 410, title: 'The packets have been overwritten', retry: false, blame: 'caller' },
  'upload-too-large': {
    status: 413,
    title: 'The uploaded file is larger than allowed',
    retry: false,
    blame: 'caller',
  },
  'range-not-satisfiable': {
    status: 416,
    title: 'The requested range is outside the file',
    retry: false,
    blame: 'caller',
  },
  'user-quota': {
    status: 429,
    title: 'The user has too many exports or tokens',
    retry: true,
    blame: 'caller',
  },
  'stream-quota': { status: 429, title: 'The caller has too many downloads', retry: true, blame: 'caller' },
  'byte-quota': {
    status: 429,
    title: 'The caller has used up the daily byte quota',
    retry: true,
    blame: 'caller',
  },
  'too-many-logins': {
    status: 429,
    title: 'Too many failed or waiting logins',
    retry: true,
    blame: 'caller',
  },
  'too-many-requests': {
    status: 429,
    title: 'Too many requests or connections from one caller',
    retry: true,
    blame: 'caller',
  },
  'internal-error': { status: 500, title: 'An internal error in capfleet', retry: false, blame: 'ours' },
  'replica-lost': {
    status: 500,
    title: 'The gateway that served the request is gone',
    retry: true,
    blame: 'ours',
  },
  'not-implemented': {
    status: 501,
    title: 'This version does not support that',
    retry: false,
    blame: 'ours',
  },
  'exports-off': { status: 501, title: 'Exports are disabled on this gateway', retry: false, blame: 'ours' },
  'store-corrupt': { status: 500, title: 'A file in the store is damaged', retry: false, blame: 'ours' },
  'device-unreachable': { status: 502, title: 'A device cannot be reached', retry: true, blame: 'device' },
  'device-protocol': {
    status: 502,
    title: 'A device violated the protocol',
    retry: true,
    blame: 'device',
  },
  'device-unverified': {
    status: 502,
    title: 'A device does not show whether its answer is complete',
    retry: false,
    blame: 'device',
  },
  'device-replaced': {
    status: 502,
    title: 'Another appliance answers under the name of the device',
    retry: true,
    blame: 'device',
  },
  'device-rejected': {
    status: 502,
    title: "A device rejected the gateway's own request",
    retry: false,
    blame: 'ours',
  },
  'seen-unsupported': {
    status: 501,
    title: 'A device cannot search for addresses',
    retry: false,
    blame: 'device',
  },
  'count-unsupported': {
    status: 501,
    title: 'A device cannot count the packets of a download',
    retry: false,
    blame: 'device',
  },
  'device-timeout': { status: 504, title: 'A device did not answer in time', retry: true, blame: 'device' },
  'download-slots-exhausted': {
    status: 503,
    title: 'All download slots of the device are in use',
    retry: true,
    blame: 'caller',
  },
  'connections-exhausted': {
    status: 503,
    title: 'The server has no free connection',
    retry: true,
    blame: 'ours',
  },
  'event-streams-exhausted': {
    status: 503,
    title: 'Too many clients follow events or telemetry',
    retry: true,
    blame: 'caller',
  },
  'compiler-busy': { status: 503, title: 'The filter compilers are busy', retry: true, blame: 'caller' },
  'queue-timeout': {
    status: 503,
    title: 'No download slot became free in time',
    retry: true,
    blame: 'caller',
  },
  'discovery-pending': {
    status: 503,
    title: 'Device discovery has not returned the list of devices yet',
    retry: true,
    blame: 'ours',
  },
  'no-device': { status: 503, title: 'There is no device to read from', retry: true, blame: 'ours' },
  draining: { status: 503, title: 'The program is shutting down', retry: true, blame: 'ours' },
  'scheduler-unavailable': {
    status: 503,
    title: 'The scheduler (Redis) cannot be reached',
    retry: true,
    blame: 'ours',
  },
  'capture-unavailable': {
    status: 503,
    title: 'The device cannot capture: privileges, interface or kernel',
    retry: true,
    blame: 'ours',
  },
  'store-unavailable': {
    status: 503,
    title: 'The store cannot be read or written',
    retry: true,
    blame: 'ours',
  },
  'audit-unavailable': {
    status: 503,
    title: 'The audit cannot be written, and requests that it must record are rejected',
    retry: true,
    blame: 'ours',
  },
  'export-target-unavailable': {
    status: 503,
    title: 'The export target cannot be reached',
    retry: true,
    blame: 'ours',
  },
  'export-store-full': { status: 507, title: 'No space left for exports', retry: true, blame: 'ours' },
  'store-full': { status: 507, title: 'The store has no space left', retry: true, blame: 'ours' },
  'export-parked': {
    status: 500,
    title: 'The export repeatedly crashed its workers or hit an internal error',
    retry: false,
    blame: 'ours',
  },
  'bad-config': {
    status: 500,
    title: 'A setting is missing, unknown or malformed',
    retry: false,
    blame: 'ours',
  },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof ERROR_KINDS

/** Details in addition to the message; all except `cause` appear in the problem body. */
export interface ErrorDetails {
  /** The query parameter or setting at fault. */
  readonly param?: string | undefined
  /** Where in that parameter's text, counted in characters from 0. */
  readonly position?: number | undefined
  /** When to try again, for the Retry-After header. */
  readonly retryAfterS?: number | undefined
  /** The methods that the path accepts, for the Allow header of a 405 (RFC 9110 section 15.5.6). */
  readonly allow?: readonly string[] | undefined
  /** Short name of what is wrong with the bearer token that was sent. */
  readonly tokenFlaw?: string | undefined
  /** Further members of the problem body, such as `readers` or `candidates`. */
  readonly members?: Readonly<Record<string, unknown>> | undefined
  readonly cause?: unknown
}

/** The only error class. `message` is a sentence for the caller: what is wrong and how to fix it. */
export class CapfleetError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'CapfleetError'
    this.code = code
    this.details = details
  }

  get kind(): ErrorKind {
    return ERROR_KINDS[this.code]
  }
}

/** A time as used in messages: "0.25 s", "3 s", "1.5 s". */
export function secondsText(ms: number): string {
  const seconds = ms / 1_000
  return `${seconds < 1 ? Number(seconds.toPrecision(2)) : Math.round(seconds * 10) / 10} s`
}

/**
 * The reason for ending work that nobody is waiting for any more. Never sent as an answer; it only has to blame
 * nobody.
 */
export function clientGone(): CapfleetError {
  return new CapfleetError('draining', 'the client disconnected')
}
