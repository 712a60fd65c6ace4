/** What a control call takes along to a device and back, by whichever of the two ways it goes. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Device } from './device.ts'
import { deviceProtocol } from './device-failure.ts'
import { deviceRefusal } from './device-refusal.ts'

/** What a device needs to know of the caller's request. Credentials and cookies are not among it. */
const REQUEST_HEADERS = [
  'accept',
  'accept-language',
  'if-none-match',
  'if-modified-since',
  'last-event-id',
  'range',
  'capfleet-caller',
] as const

/** What a caller needs of the device's answer. */
const RESPONSE_HEADERS = [
  'accept-ranges',
  'allow',
  'cache-control',
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

/** The headers of the request to the device, under the gateway's own credentials. */
export function requestHeaders(device: Device, { headers: from }: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = { authorization: device.authorization() }
  for (const name of REQUEST_HEADERS) {
    const value = from[name]
    if (value !== undefined) headers[name] = String(value)
  }
  return headers
}

/**
 * Sets status and headers of the answer to the caller; nothing is sent yet. Fails with device-rejected
 * and device-protocol when the device's answer is none for the caller.
 */
export function passHead(
  { name: device }: Device,
  status: number,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  res: ServerResponse,
): void {
  if (status === 401 || status === 403) throw deviceRefusal(device, { status, body: '' }).error
  if (status < 200 || (status >= 300 && status < 400 && status !== 304)) {
    throw deviceProtocol(device, `answered with status ${status}; redirects are not followed`)
  }
  for (const name of RESPONSE_HEADERS) {
    const value = headers[name]
    if (value !== undefined) res.setHeader(name, value)
  }
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
