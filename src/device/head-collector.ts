import { MalformedAnswer, parseResponseHead, type ResponseHead } from './response-head.ts'

/** All heads together: those of interim answers (1xx) count too. */
export const HEAD_BYTES_MAX = 16_384
const NOTHING = Buffer.alloc(0)

/** Finds the head of an answer in the reads that bring it. */
export class HeadCollector {
  #collected: Buffer = NOTHING
  #begin = 0

  /**
   * Takes the next read. Returns the final answer's head and where in `bytes` its body begins, or
   * undefined while the head is not whole; `bytes` is not kept. Throws MalformedAnswer.
   */
  take(bytes: Buffer): { readonly head: ResponseHead; readonly bodyFrom: number } | undefined {
    const earlierBytes = this.#collected.length
    const more = bytes.subarray(0, HEAD_BYTES_MAX - earlierBytes)
    // Nearly every head comes in one read, with much of the body behind it.
    const collected = earlierBytes === 0 ? more : Buffer.concat([this.#collected, more])
    for (;;) {
      const end = collected.indexOf('\r\n\r\n', this.#begin, 'latin1')
      if (end < 0) break
      const head = parseResponseHead(collected.toString('latin1', this.#begin, end))
      this.#begin = end + 4
      if (head.status === 101) throw new MalformedAnswer('switched protocols unasked')
      if (head.status >= 200) return { head, bodyFrom: this.#begin - earlierBytes }
    }
    this.#collected = earlierBytes === 0 ? Buffer.from(collected) : collected
    if (collected.length < HEAD_BYTES_MAX) return undefined
    throw new MalformedAnswer(`sent more than ${HEAD_BYTES_MAX} bytes of headers`)
  }
}
