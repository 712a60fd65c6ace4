/** How requests reach a gateway: by node:http from the command line, by fetch() from a page. */
export interface SentRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

export interface Received {
  readonly status: number
  readonly headers: Headers
  /**
   * Throws a ClientFailure when the body is cut; comes no faster than it is read. REQUIRES: it is read to its end,
   * or left by `return` or `break`, which closes the connection.
   */
  readonly body: AsyncIterable<Uint8Array>
}

/** Fails with a ClientFailure when nobody answers, or with the signal's reason. */
export type Send = (request: SentRequest) => Promise<Received>
