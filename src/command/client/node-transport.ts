/** Requests by node:http and node:https: no limit on how long an answer may be in coming, none on a silent body. */
import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { ClientFailure } from '../../client/client-failure.ts'
import type { Send, SentRequest } from '../../client/transport.ts'

/** A machine that lost its power says nothing: after so long the system asks whether it is there. */
const KEEP_ALIVE_MS = 20_000

/** `ca` is a certificate (PEM) that alone vouches for the gateway; without it, those of the system do. */
export function nodeTransport(ca?: string): Send {
  return async (sent) => {
    const response = await headOf(sent, ca)
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
  { method, url, headers, signal }: SentRequest,
  ca: string | undefined,
): Promise<IncomingMessage> {
  const options: RequestOptions = {
    method,
    headers: { ...headers },
    ...(signal === undefined ? {} : { signal }),
  }
  return new Promise((resolve, reject) => {
    const sent =
      url.protocol === 'https:'
        ? requestHttps(url, { ...options, ...(ca === undefined ? {} : { ca }) })
        : requestHttp(url, options)
    sent.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS))
    sent.on('response', resolve)
    sent.on('error', (cause) => reject(signal?.aborted === true ? signal.reason : unreachable(url, cause)))
    sent.end()
  })
}

async function* bodyOf(response: IncomingMessage, { signal }: SentRequest): AsyncGenerator<Uint8Array, void> {
  try {
    yield* response as AsyncIterable<Buffer>
  } catch (cause) {
    if (signal?.aborted === true) throw signal.reason
    throw new ClientFailure('incomplete', 'the connection broke before the end of the answer', {
      code: 'connection-broken',
      canRetry: true,
      cause,
    })
  }
}

/** Of node:tls, when nobody whom we trust vouches for the other side. */
const DISTRUST = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/

function unreachable({ protocol, host }: URL, cause: Error): ClientFailure {
  const { code = '' } = cause as NodeJS.ErrnoException
  const where = `the gateway ${protocol}//${host}`
  // node:net tells of several addresses that it tried by an error without a text.
  const reason = cause.message === '' ? code : cause.message
  if (DISTRUST.test(code)) {
    return new ClientFailure(
      'access',
      `${where} is not trusted (${reason}); log in with --ca <its certificate>`,
      {
        code: 'gateway-untrusted',
        cause,
      },
    )
  }
  return new ClientFailure('device', `${where} cannot be reached: ${reason}`, {
    code: 'gateway-unreachable',
    canRetry: true,
    cause,
  })
}
