/**
 * Requests to servers that are neither devices nor gateways: identity providers and the Kubernetes API. They may have an
 * authority of their own, which the fetch() of Node.js cannot be given.
 */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type IncomingMessage, request as requestOverHttp } from 'node:http'
import { request as requestOverTls } from 'node:https'

export interface RequestOptions {
  readonly headers: Readonly<Record<string, string>>
  /** Certificates (PEM) that alone vouch for the server, read each time; default: those of the system. */
  readonly caFile?: string | undefined
  /** A server that sends nothing for this long has failed. setTimeout() of the response changes it for the body. */
  readonly silenceMs: number
  /** Ends the request, and the body too. */
  readonly signal: AbortSignal
}

/**
 * Sends a GET over a connection of its own and follows no redirect. The caller reads the body to its end or destroys the
 * response. Rejects when the server cannot be reached or the signal aborts.
 */
export async function sendRequest(
  url: URL,
  { headers, caFile, silenceMs, signal }: RequestOptions,
): Promise<IncomingMessage> {
  const isTls = url.protocol === 'https:'
  const ca = isTls && caFile !== undefined ? { ca: await readFile(caFile) } : {}
  const options = { headers: { ...headers }, agent: false, signal, ...ca } as const
  const request = isTls ? requestOverTls(url, options) : requestOverHttp(url, options)
  request.setTimeout(silenceMs, () => request.destroy(new Error(`${url.host} sends nothing`)))
  // A failure also reaches whoever reads the body; without a reader it must not end the process.
  request.on('error', () => undefined)
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}
