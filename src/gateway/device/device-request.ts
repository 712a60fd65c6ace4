/**
 * The text of a request to a device, with the gateway's own credentials or none. Nothing of the caller's request is
 * forwarded automatically except its trace context.
 */
import { createHash } from 'node:crypto'
import { CapfleetError } from '../../shared/base/error.ts'
import { currentRequest } from '../../shared/base/request-context.ts'
import { traceHeaders } from '../../shared/base/trace-context.ts'
import type { Device } from './device.ts'

export interface DeviceRequest {
  /** Default: GET. The API of the devices has no other method that reads. */
  readonly method?: 'GET' | 'HEAD'
  /** Path and query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** Omits the gateway's credentials, so that the device returns only what is public. */
  readonly isAnonymous?: boolean
}

/** Printable, as latin1: Node accepts a few more characters from callers. */
const PATH = /^\/[\x21-\x7e\x80-\xff]*$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** A longer address would exceed what programs accept as the head of a request (64 KiB). */
const TARGET_BYTES_MAX = 60_000

/**
 * The text of the request. A GET whose address is too long is sent as a POST with its query as a form: only a list of
 * addresses (FilterAddresses) is that long, and a device that has this parameter accepts forms. Fails with bad-parameter
 * if the target could split the request in two.
 */
export function formatRequest(
  device: Device,
  { method = 'GET', target, headers, isAnonymous = false }: DeviceRequest,
): string {
  const path = device.pathOf(target)
  const isForm = method === 'GET' && path.length > TARGET_BYTES_MAX
  if (!PATH.test(path))
    throw new CapfleetError('bad-parameter', 'the address contains a character that must be percent-encoded')
  const [address, form = ''] = isForm ? splitAt(path, path.indexOf('?')) : [path]
  let text = `${isForm ? 'POST' : method} ${address} HTTP/1.1\r\nhost: ${device.url.host}\r\n`
  if (!isAnonymous) text += `authorization: ${device.authorization()}\r\n`
  for (const [name, value] of Object.entries({ ...headers, ...currentTraceHeaders() })) {
    if (!VALUE.test(value)) throw new Error(`not a value of ${name}: ${JSON.stringify(value)}`)
    text += `${name}: ${value}\r\n`
  }
  if (isForm) text += `content-type: application/x-www-form-urlencoded\r\ncontent-length: ${form.length}\r\n`
  return `${text}\r\n${form}`
}

function splitAt(path: string, at: number): readonly [address: string, query: string] {
  return at < 0 ? [path, ''] : [path.slice(0, at), path.slice(at + 1)]
}

/** Headers that tell a device which trace the current request belongs to; empty outside requests. */
export function currentTraceHeaders(): Record<string, string> {
  const request = currentRequest()
  return request === undefined ? {} : traceHeaders(request.trace)
}

const LABEL_LENGTH = 16

/**
 * Label of a caller for devices (Capfleet-Caller), which lets them share capacity fairly among callers who all use the
 * gateway's credentials. It is the same for all requests of a user, and is not the user's name.
 */
export function callerLabel(user: string): string {
  return createHash('sha256').update(user).digest('hex').slice(0, LABEL_LENGTH)
}
