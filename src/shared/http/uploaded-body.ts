/** The file that a client uploads as the body of its request. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { bytesText } from '../base/amounts.ts'
import { CapfleetError, clientGone, secondsText } from '../base/error.ts'
import { allowLongBody } from './body-time.ts'
import { askForBody, hasBody } from './request-body.ts'

export interface UploadContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
}

export interface UploadLimits {
  readonly bytesMax: number
  /** A client that sends nothing for this long, although it could, has failed. */
  readonly idleTimeoutMs: number
  /** Called with the size of each piece. */
  readonly onBytes: (bytes: number) => void
}

/** While it is not disposed, the body may take any time, also before it is read: a device may be slow to accept it. */
export class UploadedBody implements Disposable {
  readonly #ctx: UploadContext
  readonly #limits: UploadLimits
  readonly #long: Disposable
  #bytes = 0

  /** Nothing is read yet. Fails with bad-parameter if there is no body, or upload-too-large if it says so. */
  constructor(ctx: UploadContext, limits: UploadLimits) {
    this.#ctx = ctx
    this.#limits = limits
    if (!hasBody(ctx)) {
      throw new CapfleetError(
        'bad-parameter',
        'the request has no body; send a capture file, as in: curl -X POST -T FILE ADDRESS',
      )
    }
    this.#refuseMoreThan(Number(this.announcedBytes ?? 0n))
    this.#long = allowLongBody(ctx.req)
  }

  [Symbol.dispose](): void {
    this.#long[Symbol.dispose]()
  }

  /** Size of the body if the client says it. */
  get announcedBytes(): bigint | undefined {
    const { 'content-length': length } = this.#ctx.req.headers
    return length === undefined ? undefined : BigInt(length)
  }

  /** Bytes received so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether the connection broke before the end of the body. */
  get isBroken(): boolean {
    const { req } = this.#ctx
    return req.destroyed && !req.complete
  }

  /**
   * Asks the client for the body and reads it, no faster than the pieces are taken. After a failure, or if the loop is
   * left, the rest is discarded, so that the client can read the answer. Fails with upload-too-large, client-timeout, or
   * draining if the client leaves.
   */
  async *pieces(): AsyncGenerator<Buffer, void> {
    const { req } = this.#ctx
    const { idleTimeoutMs, onBytes } = this.#limits
    let onIdle = (): void => undefined
    const idle = setTimeout(() => onIdle(), idleTimeoutMs)
    const pieces = req.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>
    askForBody(this.#ctx)
    try {
      for (;;) {
        idle.refresh()
        const next = await new Promise<IteratorResult<Buffer>>((resolve, reject) => {
          onIdle = () => reject(tooSlow(idleTimeoutMs))
          pieces.next().then(resolve, reject)
        })
        if (next.done === true) {
          if (!req.complete) throw clientGone()
          return
        }
        this.#bytes += next.value.length
        this.#refuseMoreThan(this.#bytes)
        onBytes(next.value.length)
        yield next.value
      }
    } catch (error) {
      throw error instanceof CapfleetError ? error : clientGone()
    } finally {
      clearTimeout(idle)
      req.resume()
    }
  }

  #refuseMoreThan(bytes: number): void {
    const { bytesMax } = this.#limits
    if (bytes <= bytesMax) return
    throw new CapfleetError(
      'upload-too-large',
      `the file is larger than ${bytesText(bytesMax)} (uploads.bytesMax); split it, or import it on the device`,
    )
  }
}

function tooSlow(idleTimeoutMs: number): CapfleetError {
  return new CapfleetError('client-timeout', `the client sent nothing for ${secondsText(idleTimeoutMs)}`)
}
