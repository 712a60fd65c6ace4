/**
 * Calls of somebody that are passed on to a device. What only reads and ends goes by our own client (passRead):
 * it may be sent again when a kept connection turns out to be closed. What changes the device, what goes on until
 * the caller leaves, and what we do not know goes by http-proxy (DeviceProxy). There are two ways because the
 * reads are nearly all calls that there are: http-proxy, and the HTTP client of Node under it, take longer
 * for one than all else that is done for it. Both take the same headers along, and back.
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
  /** Label of the caller; the device is told, whatever the caller says of itself. */
  readonly caller: string
  /** Other users' queries are empty in the answer. Default: the answer is passed on as it came. */
  readonly emptiesQueries?: boolean
}

export interface PassedRead extends PassedCall {
  /** A device that sends nothing for so long has failed; a client that takes nothing for so long is cut off. */
  readonly timeoutMs: number
  /** As in DeviceRequest. */
  readonly isAnonymous?: boolean
}

/**
 * Answers `res` with what the device says. Resolves when all of the answer has been handed over or the client
 * has been cut off. Before the first byte it fails with device-unreachable, device-timeout, device-protocol,
 * device-rejected, unauthenticated, bad-parameter, or with draining when the client leaves. REQUIRES: the request has no body.
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
    // After the head no status is possible any more; the client must not see a clean end.
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
    // A copy, because the memory is used again. As a text, a character for each byte: Node writes that in one piece with the head.
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

/** The headers that a device needs of the caller's request; never credentials or cookies. */
const REQUEST_HEADERS = [
  'accept',
  'accept-language',
  'if-none-match',
  'if-modified-since',
  'last-event-id',
  'range',
] as const

/**
 * The headers that a caller needs of the device's answer. Not Cache-Control: a device gives all callers the same, and its
 * answer may be for this one alone.
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

/** The API of the devices knows no other method for what POST and DELETE mean here. */
export function methodOf({ method }: IncomingMessage): 'GET' | 'HEAD' {
  return method === 'HEAD' ? 'HEAD' : 'GET'
}

/** The headers of the request to the device, without the gateway's credentials. `emptiesQueries`: as in PassedCall. */
export function requestHeaders(
  { headers: from }: IncomingMessage,
  caller: string,
  emptiesQueries = false,
): Record<string, string> {
  const headers: Record<string, string> = { 'capfleet-caller': caller }
  for (const name of REQUEST_HEADERS) {
    const value = from[name]
    // A part of an answer could begin inside a value that must be emptied.
    if (value !== undefined && !(emptiesQueries && name === 'range')) headers[name] = String(value)
  }
  return headers
}

/** The head of a device's answer, as it came. */
interface AnsweredHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** As in DeviceRequest. */
  readonly isAnonymous?: boolean
  /** As in PassedCall. */
  readonly emptiesQueries?: boolean | undefined
}

/**
 * Sets status and headers of the answer to the caller; nothing is sent yet. Fails with device-rejected,
 * unauthenticated and device-protocol when the device's answer is none for the caller.
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
    // An answer in which queries are emptied has another length.
    if (value !== undefined && !(emptiesQueries && name === 'content-length')) res.setHeader(name, value)
  }
  // Of the headers of the API what has the right form.
  const ignored = parseIgnoredNames(headers['capfleet-ignored']?.toString())
  if (ignored.length > 0) res.setHeader('Capfleet-Ignored', ignoredNames(ignored))
  const timeZone = headers['capfleet-time-zone']?.toString() ?? ''
  if (ZONE_NAME.test(timeZone)) res.setHeader('Capfleet-Time-Zone', timeZone)
  const listParameters = headers['capfleet-list-parameters']?.toString() ?? ''
  if (PARAMETER_NAMES.test(listParameters)) res.setHeader('Capfleet-List-Parameters', listParameters)
  keepFromBrowser(status, String(headers['content-type'] ?? ''), res)
  res.statusCode = status
}

/** What the API's answers are made of. A browser shows these, or saves them, and runs nothing. */
const API_TYPES: ReadonlySet<string> = new Set([
  'application/json',
  'application/problem+json',
  'application/x-ndjson',
  'application/vnd.tcpdump.pcap',
  'application/gzip',
  'application/zstd',
  'application/octet-stream',
  'text/plain',
  'text/csv',
  'text/event-stream',
])

/**
 * A device is not trusted, and its answer comes from the gateway's address: a page of it could use the
 * gateway under the name of whoever looks at it. So no answer is a page. One of a type that the API
 * does not have is a file without a type: with its own it would be opened by whatever program that type
 * belongs to.
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
