/**
 * Requests with node:http and node:https: no limit on how long an answer may take to arrive, or how long its body may
 * pause.
 */
import {
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http'
import { request as requestHttps } from 'node:https'
import { certificateTrouble } from '../../../shared/base/certificate-trouble.ts'
import { ClientFailure } from '../../client-failure.ts'
import type { Send, SentFile, SentRequest } from '../../transport.ts'

/** A machine that lost power says nothing: after this time TCP keep-alive checks whether it is there. */
const KEEP_ALIVE_MS = 20_000

/** Texts in PEM. */
export interface TransportTls {
  /** Certificates of the only trusted authorities; without it those of the system are trusted. */
  readonly ca?: string
  /** The user's own certificate and its key, for a gateway that requires one. */
  readonly cert?: string
  readonly key?: string
}

export function nodeTransport(tls: TransportTls = {}): Send {
  return async (sent) => {
    const response = await headOf(sent, tls)
    return {
      status: response.statusCode ?? 0,
      headers: new Headers(Object.entries(response.headersDistinct).flatMap(headerPairs)),
      body: bodyOf(response, sent),
      [Symbol.dispose]: () => void response.destroy(),
    }
  }
}

function headerPairs([name, values = []]: [string, string[] | undefined]): [string, string][] {
  return values.map((value) => [name, value])
}

function headOf(
  { method, url, headers, form, file, signal }: SentRequest,
  tls: TransportTls,
): Promise<IncomingMessage> {
  const options: RequestOptions = {
    method,
    headers: { ...headers, ...(file === undefined ? {} : fileHeaders(file)) },
    ...(signal === undefined ? {} : { signal }),
  }
  return new Promise((resolve, reject) => {
    const sent =
      url.protocol === 'https:' ? requestHttps(url, { ...options, ...tls }) : requestHttp(url, options)
    sent.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS))
    sent.on('response', resolve)
    sent.on('error', (cause) =>
      reject(signal?.aborted === true ? signal.reason : unreachable({ method, url }, cause)),
    )
    if (file === undefined) sent.end(form)
    else {
      sendFile(sent, file).catch((error: unknown) => {
        reject(error)
        sent.destroy()
      })
    }
  })
}

function fileHeaders({ bytes }: SentFile): Record<string, string> {
  return {
    'content-type': 'application/octet-stream',
    expect: '100-continue',
    ...(bytes === undefined ? {} : { 'content-length': String(bytes) }),
  }
}

/** A proxy may not pass on that the file is asked for. */
const ASKED_LIMIT_MS = 5_000

/** Ends early, without an error, when the answer has come or the connection has ended. Fails with the file's error. */
async function sendFile(sent: ClientRequest, { pieces }: SentFile): Promise<void> {
  let isOver = false
  let wake = (): void => undefined
  const end = (): void => {
    isOver = true
    wake()
  }
  sent.once('response', end).once('close', end)
  sent.on('drain', () => wake())
  const asked = new Promise<void>((resolve) => {
    wake = resolve
    sent.once('continue', resolve)
    setTimeout(resolve, ASKED_LIMIT_MS).unref()
  })
  sent.flushHeaders()
  await asked
  if (isOver) return
  for await (const piece of pieces) {
    if (isOver) return
    if (sent.write(piece)) continue
    await new Promise<void>((resolve) => {
      wake = resolve
    })
  }
  if (!isOver) sent.end()
}

async function* bodyOf(response: IncomingMessage, { signal }: SentRequest): AsyncGenerator<Uint8Array, void> {
  try {
    yield* response as AsyncIterable<Buffer>
  } catch (cause) {
    if (signal?.aborted === true) throw signal.reason
    throw new ClientFailure('incomplete', 'the connection broke before the end of the response', {
      code: 'connection-broken',
      canRetry: true,
      cause,
    })
  }
}

/** OpenSSL's message about an answer that is plain HTTP. */
const PLAIN_ANSWER = /wrong version number|packet length too long/i

type Asked = Pick<SentRequest, 'method' | 'url'>

function unreachable({ method, url: { protocol, host } }: Asked, cause: Error): ClientFailure {
  const { code = '' } = cause as NodeJS.ErrnoException
  // Reads are safe to repeat. A change is repeated only if it has reached no server.
  const isQuestion = method === 'GET' || method === 'HEAD'
  const isUntaken = code === 'ECONNREFUSED' || (isQuestion && ['ECONNRESET', 'EPIPE'].includes(code))
  const where = `the gateway ${protocol}//${host}`
  // If several addresses were tried, node:net reports an error without a message.
  const reason = cause.message === '' ? code : cause.message
  const trouble = certificateTrouble(cause)
  if (trouble?.whose === 'theirs') {
    const message = `${where} is not trusted (${trouble.reason}); log in with --ca <its certificate>`
    return new ClientFailure('access', message, { code: 'gateway-untrusted', cause })
  }
  if (trouble?.whose === 'ours') {
    const message = `${where} requires a client certificate that it trusts (${trouble.reason}); log in with --cert and --key`
    return new ClientFailure('access', message, { code: 'certificate-needed', cause })
  }
  const told = PLAIN_ANSWER.test(reason) ? `it does not use TLS; is its address http://${host}?` : reason
  return new ClientFailure('device', `${where} cannot be reached: ${told}`, {
    code: 'gateway-unreachable',
    canRetry: true,
    isUntaken,
    cause,
  })
}
