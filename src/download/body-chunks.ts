import type { BodyRead } from '../device/device-stream.ts'
import type { ChunkStream } from '../pcap/chunk-stream.ts'
import type { SourceBody } from './source-body.ts'

const DONE = { done: true, value: undefined } as const

/** The data of a body, piece by piece; the memory of a read is given back when its pieces are used up. */
export class BodyChunks implements ChunkStream, AsyncIterableIterator<Buffer> {
  readonly #body: Pick<SourceBody, 'take' | 'next'>
  #read: BodyRead | undefined
  /** How many pieces of the read were given. */
  #given = 0
  /** Nothing comes any more, or nobody wants it. */
  #isEnded = false

  constructor(body: Pick<SourceBody, 'take' | 'next'>) {
    this.#body = body
  }

  take(): Buffer | undefined {
    while (!this.#isEnded) {
      const piece = this.#read?.data[this.#given]
      this.#given += 1
      if (piece !== undefined) return piece
      this.#release()
      this.#read = this.#body.take()
      if (this.#read === undefined) return undefined
    }
    return undefined
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    for (;;) {
      const piece = this.take()
      if (piece !== undefined) return { done: false, value: piece }
      if (this.#isEnded) return DONE
      const read = await this.#body.next()
      if (read === undefined) this.#isEnded = true
      this.#read = read
      // Given back since then.
      if (this.#isEnded) this.#release()
    }
  }

  /** The stream stays its owner's to end. */
  return(): Promise<IteratorResult<Buffer, undefined>> {
    this.#isEnded = true
    this.#release()
    return Promise.resolve(DONE)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #release(): void {
    this.#read?.release()
    this.#read = undefined
    this.#given = 0
  }
}
