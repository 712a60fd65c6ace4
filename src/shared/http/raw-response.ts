/**
 * A response whose body is written straight to its socket, so that bytes that are already chunks need no copy and no
 * second framing. Node still writes the head and the end of the body, so keep-alive, 'finish', 'close' and their
 * listeners work as usual.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export class RawResponse {
  readonly #res: ServerResponse
  readonly #socket: Socket

  /**
   * Writes the head, unless already written; it must not specify a length. Fails if the client has left. REQUIRES: it
   * is the response's turn on its connection (http-server.ts ensures that).
   */
  constructor(res: ServerResponse, head: Readonly<Record<string, string>>) {
    const { socket } = res
    if (socket === null || res.closed) throw new Error('the client disconnected')
    const isHttp11 = res.req.httpVersion === '1.1'
    if (!res.headersSent) res.writeHead(200, isHttp11 ? { ...head, 'Transfer-Encoding': 'chunked' } : head)
    res.flushHeaders()
    this.#res = res
    this.#socket = socket
  }

  /** Whether the body must be HTTP/1.1 chunks; otherwise plain bytes. */
  get isChunked(): boolean {
    return this.#res.chunkedEncoding
  }

  /** Whether some of what was written has not been accepted by the client yet. */
  get isBehind(): boolean {
    return this.#socket.writableLength > 0
  }

  /** Writes the pieces in one go; `done` is called when their memory is free, even after a failure. */
  write(pieces: readonly Uint8Array[], done: () => void): void {
    const last = pieces.length - 1
    if (last > 0) this.#socket.cork()
    for (const [index, piece] of pieces.entries())
      this.#socket.write(piece, index === last ? done : undefined)
    if (last > 0) this.#socket.uncork()
    if (last < 0) done()
  }

  /** Ends the body; resolves when all of it has been sent, rejects if the client leaves first. */
  async end(trailers: Readonly<Record<string, string>>): Promise<void> {
    const res = this.#res
    if (this.isChunked) res.addTrailers({ ...trailers })
    const ended = new Promise<void>((resolve, reject) => {
      res.once('finish', resolve)
      res.once('close', () => reject(new Error('the client disconnected')))
    })
    if (res.closed) throw new Error('the client disconnected')
    res.end()
    await ended
  }
}
