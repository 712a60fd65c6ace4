/** Client for a gateway, as one user. */
import { ClientFailure, problemFailure } from './client-failure.ts'
import type { Received, Send, SentFile, SentRequest } from './transport.ts'

/** What proves who asks. */
export type Credentials = { readonly user: string; readonly password: string } | { readonly token: string }

export interface GatewayAccess {
  /** May end with a path, below which the gateway answers. */
  readonly url: string
  /** Absent: only requests that need none succeed. */
  readonly credentials?: Credentials | undefined
  /** What the user can do if the gateway rejects the credentials: added to its message. */
  readonly loginAdvice?: string
}

/** Names and texts of parameters. */
export type QueryPairs = readonly (readonly [name: string, value: string])[]

export interface AskOptions {
  readonly method?: SentRequest['method']
  readonly query?: QueryPairs
  readonly headers?: Readonly<Record<string, string>>
  readonly file?: SentFile | undefined
  readonly signal?: AbortSignal | undefined
}

/** A JSON answer, parsed and as text, because parsing changes integers beyond 2^53. */
export interface JsonAnswer<Value> {
  readonly value: Value
  readonly text: string
  readonly headers: Headers
}

/** Long enough for a replica behind a load balancer to be replaced, short enough to report a wrong address soon. */
const UNTAKEN_PAUSES_MS = [250, 500, 1_000, 1_500]

/** A longer query is sent as the form of a POST request: programs on the way may limit addresses to 8 KiB. */
const QUERY_CHARACTERS_MAX = 7_000
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** Longer error bodies are not from our programs. */
const PROBLEM_BYTES_MAX = 65_536

export class GatewayClient {
  readonly access: GatewayAccess
  readonly #send: Send

  constructor(access: GatewayAccess, send: Send) {
    this.access = access
    this.#send = send
  }

  /**
   * An answer of status 2xx with its body unread; any other is thrown as a ClientFailure. A request that no gateway
   * accepted is retried for some seconds, unless it has a file, which can be read only once.
   */
  async open(path: string, options: AskOptions = {}): Promise<Received> {
    for (const pauseMs of UNTAKEN_PAUSES_MS) {
      try {
        return await this.#ask(path, options)
      } catch (error) {
        const isUntaken = error instanceof ClientFailure && error.facts.isUntaken === true
        if (!isUntaken || options.file !== undefined) throw error
        await pause(pauseMs, options.signal)
      }
    }
    return await this.#ask(path, options)
  }

  async #ask(
    path: string,
    { method = 'GET', query = [], headers = {}, file, signal }: AskOptions,
  ): Promise<Received> {
    const { credentials } = this.access
    const address = this.addressOf(path, query)
    const isLong = address.search.length > QUERY_CHARACTERS_MAX && method !== 'HEAD'
    const answer = await this.#send({
      ...(isLong
        ? { method: 'POST', url: this.addressOf(path), form: address.search.slice(1) }
        : { method, url: address }),
      headers: {
        ...headers,
        ...(isLong ? { 'content-type': FORM_TYPE } : {}),
        ...(credentials === undefined ? {} : { authorization: authorizationOf(credentials) }),
      },
      file,
      signal,
    })
    if (answer.status >= 200 && answer.status < 300) return answer
    using refused = answer
    const failure = problemFailure(
      refused.status,
      refused.headers,
      await readText(refused.body, PROBLEM_BYTES_MAX),
    )
    const { loginAdvice } = this.access
    if (failure.code !== 'unauthenticated' || loginAdvice === undefined) throw failure
    throw new ClientFailure(failure.kind, `${failure.message}; ${loginAdvice}`, failure.facts)
  }

  /** Fails with a ClientFailure. */
  async json<Value>(path: string, options: AskOptions = {}): Promise<JsonAnswer<Value>> {
    using answer = await this.open(path, options)
    const { headers, body } = answer
    const text = await readText(body, Number.POSITIVE_INFINITY)
    return { value: JSON.parse(text) as Value, text, headers }
  }

  /** The full address of an API path. */
  addressOf(path: string, query: QueryPairs = []): URL {
    const { url } = this.access
    const address = new URL(path.slice(1), url.endsWith('/') ? url : `${url}/`)
    address.search = query
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
      .join('&')
    return address
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) onAbort()
  })
}

function authorizationOf(credentials: Credentials): string {
  if ('token' in credentials) return `Bearer ${credentials.token}`
  const bytes = new TextEncoder().encode(`${credentials.user}:${credentials.password}`)
  return `Basic ${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}`
}

async function readText(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true })
    if (text.length > bytesMax) break
  }
  return text + decoder.decode()
}
