/**
 * Calls that are forwarded to a device. Those that only read and end use our own client (passRead); they may be
 * retried if an idle connection turns out to be closed. Those that change the device, that continue until the caller
 * leaves, or that we do not know use http-proxy (DeviceProxy). There are two paths because reads are nearly all of the
 * calls, and http-proxy with Node's HTTP client takes longer for one than everything else that is done for it. Both
 * forward the same headers in both directions.
 */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { clientGone } from '../../shared/base/error.ts'
import { JoinedSignal } from '../../shared/base/joined-signal.ts'
import { ignoredNames, parseIgnoredNames } from '../../shared/query/ignored-names.ts'
import type { Device } from './device.ts'
import { ANSWER_BYTES_MAX, type DeviceClient } from './device-client.ts'
import { deviceProtocol } from './device-failure.ts'
import { deviceRefusal } from './device-refusal.ts'
import type { DeviceStream } from './device-stream.ts'
import { withoutQueries } from './emptied-queries.ts'

export interface PassedCall {
  /** Path and query. */
  readonly target: string
  /** Label of the caller, sent to the device whatever the caller's own request says. */
  readonly caller: string
  /** Whether other users' queries are emptied in the answer. Default: the answer is forwarded unchanged. */
  readonly emptiesQueries?: boolean
}

export interface PassedRead extends PassedCall {
  /** A device that sends nothing for this long has failed; a client that accepts nothing for this long is cut off. */
  readonly timeoutMs: number
  /** See DeviceRequest. */
  readonly isAnonymous?: boolean
}

/**
 * Answers `res` with the device's answer. Resolves when all of the answer has been passed on or the client has been
 * cut off. Before the first byte it fails with device-unreachable, device-timeout, device-protocol, device-rejected,
 * unauthenticated, bad-parameter, or with draining if the client leaves. REQUIRES: the request has no body.
 */
export async function passRead(
  client: DeviceClient,
  { target, caller, timeoutMs, isAnonymous = false, emptiesQueries = false }: PassedRead,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const leaving = new AbortController()
  const leave = () => {
    if (!res.writableFinished) leaving.abort(clientGone())
  }
  res.once('close', leave)
  if (res.closed) leave()
  const limit = { timeoutMs, signal: leaving.signal }
  const headers = requestHeaders(req, caller, emptiesQueries)
  using answer = await client.openAnswer({ method: methodOf(req), target, headers, isAnonymous }, limit)
  passHead(client.device, { ...answer.head, isAnonymous, emptiesQueries }, res)
  if (emptiesQueries) {
    const text = answer.isWhole ? '' : await client.readText(answer, ANSWER_BYTES_MAX.control)
    res.end(text === '' ? '' : withoutQueries(text))
    return
  }
  try {
    await passBody(answer, res, limit)
  } catch {
    // After the head no status can be sent any more; the client must not see a clean end.
    res.destroy()
  }
}

async function passBody(
  answer: DeviceStream,
  res: ServerResponse,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<void> {
  for (;;) {
    const read = answer.isWhole ? undefined : await answer.next()
    // A copy, because the buffer is reused. A latin1 string (one character per byte), because Node writes that in one
    // piece with the head.
    const text = read?.data.map((piece) => piece.toString('latin1')).join('') ?? ''
    read?.release()
    if (read === undefined || answer.isWhole) {
      res.end(text, 'latin1')
      return
    }
    if (res.write(text, 'latin1')) continue
    using taking = new JoinedSignal([signal], timeoutMs)
    await once(res, 'drain', { signal: taking.signal })
  }
}

/** Headers of the caller's request that a device needs; never credentials or cookies. */
const REQUEST_HEADERS = [
  'accept',
  'accept-language',
  'if-none-match',
  'if-modified-since',
  'last-event-id',
  'range',
] as const

/**
 * Headers of the device's answer that a caller needs. Not Cache-Control: a device answers all callers alike, but this
 * answer may be for one caller only.
 */
const RESPONSE_HEADERS = [
  'accept-ranges',
  'allow',
  'content-disposition',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'last-modified',
  'retry-after',
  'x-accel-buffering',
]

const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/

const PARAMETER_NAMES = /^[A-Za-z]{1,32}(, [A-Za-z]{1,32}){0,31}$/

/** The API of the devices uses no other method for what POST and DELETE mean here. */
export function methodOf({ method }: IncomingMessage): 'GET' | 'HEAD' {
  return method === 'HEAD' ? 'HEAD' : 'GET'
}

/** Headers of the request to the device, without the gateway's credentials. `emptiesQueries`: as in PassedCall. */
export function requestHeaders(
  { headers: from }: IncomingMessage,
  caller: string,
  emptiesQueries = false,
): Record<string, string> {
  const headers: Record<string, string> = { 'capfleet-caller': caller }
  for (const name of REQUEST_HEADERS) {
    const value = from[name]
    // A partial answer could begin inside a value that must be emptied.
    if (value !== undefined && !(emptiesQueries && name === 'range')) headers[name] = String(value)
  }
  return headers
}

/** The head of a device's answer, as received. */
interface AnsweredHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** See DeviceRequest. */
  readonly isAnonymous?: boolean
  /** See PassedCall. */
  readonly emptiesQueries?: boolean | undefined
}

/**
 * Sets status and headers of the answer to the caller without sending anything. Fails with device-rejected,
 * unauthenticated or device-protocol if the device's answer must not reach the caller.
 */
export function passHead(
  { name: device }: Device,
  { status, headers, isAnonymous = false, emptiesQueries = false }: AnsweredHead,
  res: ServerResponse,
): void {
  if (status === 401 || status === 403) throw deviceRefusal(device, { status, body: '', isAnonymous }).error
  if (status < 200 || (status >= 300 && status < 400 && status !== 304)) {
    throw deviceProtocol(device, `answered with status ${status}; redirects are not followed`)
  }
  if (emptiesQueries && headers['content-encoding'] !== undefined)
    throw deviceProtocol(device, 'sent a body in an encoding that was not requested')
  for (const name of RESPONSE_HEADERS) {
    const value = headers[name]
    // Emptying queries changes the length of an answer.
    if (value !== undefined && !(emptiesQueries && name === 'content-length')) res.setHeader(name, value)
  }
  // Headers of the API are forwarded only if they have the right form.
  const ignored = parseIgnoredNames(headers['capfleet-ignored']?.toString())
  if (ignored.length > 0) res.setHeader('Capfleet-Ignored', ignoredNames(ignored))
  const timeZone = headers['capfleet-time-zone']?.toString() ?? ''
  if (ZONE_NAME.test(timeZone)) res.setHeader('Capfleet-Time-Zone', timeZone)
  const listParameters = headers['capfleet-list-parameters']?.toString() ?? ''
  if (PARAMETER_NAMES.test(listParameters)) res.setHeader('Capfleet-List-Parameters', listParameters)
  keepFromBrowser(status, String(headers['content-type'] ?? ''), res)
  res.statusCode = status
}

/** Media types of the API. A browser displays or saves these, and runs nothing. */
const API_TYPES: ReadonlySet<string> = new Set([
  'application/json',
  'application/problem+json',
  'application/x-ndjson',
  'application/vnd.tcpdump.pcap',
  'application/x-pcapng',
  'application/gzip',
  'application/zstd',
  'application/octet-stream',
  'text/plain',
  'text/csv',
  'text/event-stream',
])

/**
 * A device is not trusted, and its answer comes from the gateway's address: an HTML page from it could use the gateway
 * with the identity of whoever views it. So no answer is delivered as a page. One with a type that the API does not
 * use becomes a file without a type; otherwise it would be opened by whatever program that type belongs to.
 */
function keepFromBrowser(status: number, contentType: string, res: ServerResponse): void {
  res.setHeader('X-Content-Type-Options', 'nosniff')
  res.setHeader('Content-Security-Policy', "sandbox; default-src 'none'")
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const hasBody = status !== 204 && status !== 304
  if (API_TYPES.has(type) || !hasBody) return
  res.setHeader('Content-Type', 'application/octet-stream')
  res.setHeader('Content-Disposition', 'attachment')
}
