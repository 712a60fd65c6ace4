/**
 * A request to a device as text, under the gateway's own credentials or under nobody's. Nothing of a caller's goes
 * along by itself but the trace that it belongs to.
 */
import { createHash } from 'node:crypto'
import { CapfleetError } from '../../shared/base/error.ts'
import { currentRequest } from '../../shared/base/request-context.ts'
import { traceHeaders } from '../../shared/base/trace-context.ts'
import type { Device } from './device.ts'

export interface DeviceRequest {
  /** Default: GET. The API of the devices knows no other method that reads. */
  readonly method?: 'GET' | 'HEAD'
  /** Path and query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** Without the gateway's credentials: the device tells no more than it tells everybody. */
  readonly isAnonymous?: boolean
}

/** Printable, as latin1: Node takes a few more characters of callers. */
const PATH = /^\/[\x21-\x7e\x80-\xff]*$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** The text of the request. Fails with bad-parameter when the target could split it in two. */
export function formatRequest(
  device: Device,
  { method = 'GET', target, headers, isAnonymous = false }: DeviceRequest,
): string {
  const path = device.pathOf(target)
  if (!PATH.test(path))
    throw new CapfleetError('bad-parameter', 'the address holds a character that must be percent-encoded')
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${device.url.host}\r\n`
  if (!isAnonymous) text += `authorization: ${device.authorization()}\r\n`
  for (const [name, value] of Object.entries({ ...headers, ...currentTraceHeaders() })) {
    if (!VALUE.test(value)) throw new Error(`not a value of ${name}: ${JSON.stringify(value)}`)
    text += `${name}: ${value}\r\n`
  }
  return `${text}\r\n`
}

/** What tells a device of the trace to which the present request belongs; nothing outside of requests. */
export function currentTraceHeaders(): Record<string, string> {
  const request = currentRequest()
  return request === undefined ? {} : traceHeaders(request.trace)
}

const LABEL_LENGTH = 16

/**
 * What the gateway tells devices of its callers (Capfleet-Caller), so that they can share out fairly among
 * those who all come under its own credentials: the same for all requests of a user, and no name.
 */
export function callerLabel(user: string): string {
  return createHash('sha256').update(user).digest('hex').slice(0, LABEL_LENGTH)
}
