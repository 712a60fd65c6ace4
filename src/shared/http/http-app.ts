/**
 * What all HTTP programs have in common: request id and trace, problem bodies (RFC 9457), one access line per request,
 * Server-Timing. A handler throws CapfleetError; nothing else decides what an error looks like.
 */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import Koa from 'koa'
import type { Caller } from '../base/caller.ts'
import type { EndedSpan, SpanSink } from '../base/ended-span.ts'
import { CapfleetError, ERROR_KINDS, type ErrorCode } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import { withinRequest } from '../base/request-context.ts'
import { epochMs } from '../base/spans.ts'
import { continueTrace, type TraceContext, type TraceHeaders } from '../base/trace-context.ts'
import { TrustedProxies } from './caller-address.ts'
import { refusalOf } from './connection-limits.ts'
import { refuseLongHeaders } from './header-limits.ts'
import { unlikeRange } from './later-range.ts'
import { refuseBody } from './request-body.ts'
import { ServerTiming } from './server-timing.ts'
import { isAskedByPage } from './session-cookie.ts'

export interface HttpAppOptions {
  /** Whether callers may use bearer tokens (RFC 6750) in addition to HTTP Basic. */
  readonly takesTokens?: boolean
  readonly log: Log
  readonly metrics: Metrics
  /** Codes of problems whose counters start at 0 before the first one, because alerts are based on increases. */
  readonly watchedProblems?: readonly ErrorCode[]
  /** Networks of proxies whose X-Forwarded-For is trusted. Default: none. */
  readonly trustedProxies?: readonly string[]
  /** How long browsers that used TLS must keep using it (HSTS), in seconds. Default: 0, no header is sent. */
  readonly hstsMaxAgeS?: number
  /** Where spans of requests are sent; undefined: tracing is off. */
  readonly spans?: SpanSink | undefined
}

/** Set by the first middleware for all later ones. */
export interface RequestState {
  requestId: string
  /** Client address in the form that caller-address.ts uses to tell callers apart. */
  address: string
  timing: ServerTiming
  /** The path of the matched route, as in the table. */
  route?: string
  /** Whether other users' queries are emptied in the answer. */
  emptiesQueries?: boolean
  /** Set by authentication; undefined: anonymous. */
  caller?: Caller
  /** What the request is about, as far as it was parsed; included in its audit lines. */
  facts?: {
    readonly devices?: readonly string[]
    /** The user whose request is cancelled. */
    readonly owner?: string
    /** Of an upload, as far as it has come. */
    readonly bytes?: number
    readonly packets?: string | undefined
  }
  /** Whether parameters came in the body. */
  hasForm?: boolean
  /** The parameters of the query string, once decoded. */
  given?: ReadonlyMap<string, string>
}

/** Paths whose clients expect `Status` and `Str` in every JSON answer. */
const LEGACY_PATH = /^(\/devices\/[^/]+)?\/(sysmaster|stream|pcap)\//

/** A caller's path may have 64 KiB. */
const PATH_SHOWN_MAX = 200

export function createHttpApp(options: HttpAppOptions): Koa<RequestState> {
  const app = new Koa<RequestState>()
  const count = requestCounts(options)
  const proxies = new TrustedProxies(options.trustedProxies ?? [])
  const { hstsMaxAgeS = 0 } = options
  // Koa reports here what it cannot turn into an answer, such as a client that left.
  app.on('error', (err: Error) => options.log.debug('http.response-error', { err }))
  const answer = async (ctx: Koa.ParameterizedContext<RequestState>, next: Koa.Next) => {
    // Caused by a base address that ends with a slash; everything that checks the path must see the same one.
    if (ctx.path.includes('//')) ctx.path = ctx.path.replaceAll(/\/{2,}/g, '/')
    try {
      refuseConnection(ctx)
      refuseLongHeaders(ctx.req.headers)
      // Ignoring filters that a client sends in this way would return more than it asked for.
      if (ctx.method === 'GET' || ctx.method === 'HEAD') refuseBody(ctx)
      await next()
      if (ctx.status === 404 && ctx.body === undefined && ctx.respond !== false) throw noSuchPath(ctx.path)
    } catch (error) {
      count.problem(answerProblem(ctx, error, options))
    }
  }
  app.use(async (ctx, next) => {
    const requestId = randomUUID()
    const { spans } = options
    const trace = continueTrace(ctx.req.headers as TraceHeaders, spans?.ratio)
    const startMs = epochMs()
    ctx.state.requestId = requestId
    ctx.state.address = proxies.callerOf(ctx.req)
    ctx.state.timing = new ServerTiming(ctx.res)
    ctx.res.setHeader('Capfleet-Request-Id', requestId)
    // Nearly all answers depend on their caller; those that may be cached set their own header.
    ctx.res.setHeader('Cache-Control', 'no-store')
    if (hstsMaxAgeS > 0 && proxies.isEncrypted(ctx.req))
      ctx.res.setHeader('Strict-Transport-Security', `max-age=${hstsMaxAgeS}`)
    ctx.res.on('close', () => {
      count.ended(ctx)
      options.log[levelOf(ctx)]('http.request', { requestId, traceId: trace.traceId, ...accessFields(ctx) })
      if (trace.isSampled && !PROBED_PATHS.has(ctx.path)) spans?.add(requestSpan(ctx, trace, startMs))
    })
    await withinRequest({ requestId, trace, spans }, () => answer(ctx, next))
  })
  return app
}

function accessFields({ method, path, state, res }: Koa.ParameterizedContext<RequestState>) {
  return {
    method,
    path,
    user: state.caller?.name,
    status: statusOf(res),
    complete: res.writableFinished,
    durationMs: Math.round(state.timing.elapsedMs),
  }
}

/** The status used by other programs: the client closed the connection before there was an answer. */
const CLIENT_GONE = 499

/** Before there is an answer, the status in Node and Koa is meaningless. */
function statusOf({ headersSent, statusCode }: ServerResponse): number {
  return headersSent ? statusCode : CLIENT_GONE
}

/** Paths of probes that are called every few seconds, usually successfully. */
const PROBED_PATHS: ReadonlySet<string> = new Set(['/livez', '/readyz', '/metrics'])

function requestSpan(
  { method, path, state, res }: Koa.ParameterizedContext<RequestState>,
  trace: TraceContext,
  startMs: number,
): EndedSpan {
  const { writableFinished } = res
  const statusCode = statusOf(res)
  const isFailed = statusCode >= 500 || !writableFinished
  return {
    name: state.route === undefined ? method : `${method} ${state.route}`,
    kind: 'server',
    trace,
    startMs,
    endMs: epochMs(),
    attributes: {
      'http.request.method': method,
      'url.path': path.slice(0, PATH_SHOWN_MAX),
      ...(state.route === undefined ? {} : { 'http.route': state.route }),
      'http.response.status_code': statusCode,
      'capfleet.request_id': state.requestId,
    },
    error: isFailed ? (writableFinished ? `status ${statusCode}` : 'the response was cut off') : undefined,
  }
}

function levelOf({ path, res }: Koa.ParameterizedContext<RequestState>) {
  const statusCode = statusOf(res)
  if (statusCode >= 500) return 'warn'
  return PROBED_PATHS.has(path) && statusCode < 400 ? 'debug' : 'info'
}

/** Callers may use any of the methods that Node supports. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'DELETE'])

function requestCounts({ metrics, watchedProblems = [] }: HttpAppOptions) {
  const requests = metrics.counter('http_requests_total', 'Requests by status', ['method', 'status'])
  const problems = metrics.counter(
    'http_problems_total',
    'Requests that ended with an error, by error code',
    ['code'],
    [{ code: 'internal-error' }, ...watchedProblems.map((code) => ({ code }))],
  )
  return {
    ended: ({ method, res }: Koa.ParameterizedContext<RequestState>) =>
      requests.inc({ method: METHODS.has(method) ? method : 'other', status: statusOf(res) }),
    problem: (code: ErrorCode) => problems.inc({ code }),
  }
}

/** The connection itself may exceed the limit. Busy is not dead: a liveness probe must still be answered. */
function refuseConnection(ctx: Koa.ParameterizedContext<RequestState>): void {
  const refusal = refusalOf(ctx.req.socket)
  if (refusal === undefined) return
  ctx.set('Connection', 'close')
  if (ctx.path !== '/livez') throw refusal
}

/** Exported for the appliance, whose paths are looked up elsewhere. */
export function noSuchPath(path: string): CapfleetError {
  const shown = path.length > PATH_SHOWN_MAX ? `${path.slice(0, PATH_SHOWN_MAX)}...` : path
  return new CapfleetError('not-found', `no such path: ${shown}; /openapi lists the paths`)
}

/** Returns the code of the error. */
function answerProblem(
  ctx: Koa.ParameterizedContext<RequestState>,
  thrown: unknown,
  { log, takesTokens = false }: HttpAppOptions,
): ErrorCode {
  const error = toCapfleetError(thrown)
  if (error.code === 'internal-error')
    log.error('http.internal-error', { requestId: ctx.state.requestId, err: thrown })
  if (ctx.res.headersSent) {
    // No status can be sent any more; a streaming handler has cut the body already.
    ctx.res.destroy()
    return error.code
  }
  ctx.respond = true
  for (const [name, value] of Object.entries(problemHeaders(error))) ctx.set(name, value)
  if (error.code === 'unauthenticated')
    ctx.set('WWW-Authenticate', challenges(error, takesTokens, isAskedByPage(ctx.req)))
  ctx.status = error.kind.status
  const body = JSON.stringify(problemBody(error, ctx.state.requestId, LEGACY_PATH.test(ctx.path)))
  ctx.body = unlikeRange(body, ctx.req.headers.range)
  ctx.type = 'application/problem+json'
  return error.code
}

function toCapfleetError(thrown: unknown): CapfleetError {
  if (thrown instanceof CapfleetError) return thrown
  if (isUriError(thrown)) {
    return new CapfleetError(
      'bad-parameter',
      'the address contains a percent sign that does not start a valid %XX sequence',
    )
  }
  return new CapfleetError('internal-error', 'the request hit an internal error; the log has the details', {
    cause: thrown,
  })
}

/** For a malformed %XX in a path, the router would answer with its own plain 400. */
function isUriError(thrown: unknown): boolean {
  return (
    thrown instanceof URIError || (thrown instanceof Error && 'status' in thrown && thrown.status === 400)
  )
}

/** The same request may succeed later. */
const RETRY_AFTER_STATUSES: ReadonlySet<number> = new Set([429, 503])

function problemHeaders(error: CapfleetError): Record<string, string> {
  const headers: Record<string, string> = { 'Cache-Control': 'no-store' }
  if (RETRY_AFTER_STATUSES.has(error.kind.status))
    headers['Retry-After'] = String(error.details.retryAfterS ?? 1)
  if (error.details.allow !== undefined) headers.Allow = error.details.allow.join(', ')
  return headers
}

/** Authentication schemes, each in a header of its own. */
function challenges(
  { details: { tokenFlaw } }: CapfleetError,
  takesTokens: boolean,
  askedByPage: boolean,
): string[] {
  const basic = 'Basic realm="capfleet", charset="UTF-8"'
  if (!takesTokens) return [basic]
  const bearer = `Bearer realm="capfleet"${tokenFlaw === undefined ? '' : ', error="invalid_token"'}`
  return askedByPage ? [bearer] : [basic, bearer]
}

/** The JSON members of a problem; exported so that the command line and the tests use the same shape. */
export function problemBody(
  error: CapfleetError,
  requestId: string,
  legacy: boolean,
): Record<string, unknown> {
  return {
    type: `urn:capfleet:error:${error.code}`,
    title: ERROR_KINDS[error.code].title,
    status: error.kind.status,
    detail: error.message,
    code: error.code,
    requestId,
    ...(error.details.param === undefined ? {} : { param: error.details.param }),
    ...(error.details.position === undefined ? {} : { position: error.details.position }),
    ...error.details.members,
    ...(legacy ? { Status: false, Str: error.message } : {}),
  }
}
