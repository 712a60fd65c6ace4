/**
 * Requests with node:http and node:https: no limit on how long an answer may take to arrive, or how long its body may
 * pause.
 */
import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { certificateTrouble } from '../../../shared/base/certificate-trouble.ts'
import { ClientFailure } from '../../client-failure.ts'
import type { Send, SentRequest } from '../../transport.ts'

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
  { method, url, headers, form, signal }: SentRequest,
  tls: TransportTls,
): Promise<IncomingMessage> {
  const options: RequestOptions = {
    method,
    headers: { ...headers },
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
    sent.end(form)
  })
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
  // A question may be sent twice without harm; a change only if it has not reached anyone.
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
