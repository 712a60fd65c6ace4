/** How requests reach a gateway: by node:http from the command line, by fetch() from a page. */
export interface SentRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

/** Dispose closes the connection, where the body has not been read to its end. */
export interface Received extends Disposable {
  readonly status: number
  readonly headers: Headers
  /** Throws a ClientFailure when the body is cut; comes no faster than it is read. */
  readonly body: AsyncIterable<Uint8Array>
}

/** Fails with a ClientFailure when nobody answers, or with the signal's reason. */
export type Send = (request: SentRequest) => Promise<Received>
