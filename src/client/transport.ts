/** How requests reach a gateway: with node:http on the command line, with fetch() on a page. */
export interface SentRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** The body: a form. */
  readonly form?: string | undefined
  /** The body: a file. */
  readonly file?: SentFile | undefined
  readonly signal?: AbortSignal | undefined
}

/** Bytes that are sent once the other side has asked for them. */
export interface SentFile {
  /** Absent: not known before its end. */
  readonly bytes?: number | undefined
  readonly pieces: AsyncIterable<Uint8Array>
}

/** Dispose closes the connection if the body has not been read to its end. */
export interface Received extends Disposable {
  readonly status: number
  readonly headers: Headers
  /** Throws a ClientFailure if the body is cut; arrives no faster than it is read. */
  readonly body: AsyncIterable<Uint8Array>
}

/** Fails with a ClientFailure if there is no answer, or with the signal's reason. */
export type Send = (request: SentRequest) => Promise<Received>
