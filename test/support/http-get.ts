/** A plain HTTP client for tests: whole answers with trailers, or an answer whose body is not read. */
import { once } from 'node:events'
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { request as requestOverTls } from 'node:https'
import { buffer } from 'node:stream/consumers'
import type { SecureContextOptions } from 'node:tls'

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly trailers: NodeJS.Dict<string>
  readonly body: Buffer
  /** The body as JSON. */
  json(): Record<string, unknown>
}

export interface HttpGetOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** "name:password" of Basic authentication. */
  readonly user?: string | undefined
  /** Local address to connect from; default: chosen by the system. */
  readonly localAddress?: string
  /** The CA of the server and the client's own certificate, for https. */
  readonly tls?: SecureContextOptions
}

/** Rejects if the answer is cut. */
export async function httpGet(url: string, options: HttpGetOptions = {}): Promise<HttpAnswer> {
  const { response } = await httpOpen(url, options)
  const body = await buffer(response)
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    trailers: response.trailers,
    body,
    json: () => JSON.parse(body.toString('utf8')) as Record<string, unknown>,
  }
}

/** An answer whose head has arrived; its body is only read by the caller. */
export interface OpenAnswer extends Disposable {
  readonly response: IncomingMessage
  readonly request: ClientRequest
}

/** Dispose breaks the connection. */
export async function httpOpen(url: string, options: HttpGetOptions = {}): Promise<OpenAnswer> {
  const send = url.startsWith('https:') ? requestOverTls : request
  const sent = send(url, {
    ...options.tls,
    agent: false,
    method: options.method ?? 'GET',
    headers: { ...options.headers },
    ...(options.user === undefined ? {} : { auth: options.user }),
    ...(options.localAddress === undefined ? {} : { localAddress: options.localAddress }),
  })
  sent.end(options.body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  // A broken connection is an expected end of an unread answer.
  response.on('error', () => undefined)
  sent.on('error', () => undefined)
  return {
    response,
    request: sent,
    [Symbol.dispose]: () => void sent.destroy(),
  }
}
