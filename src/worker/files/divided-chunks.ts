/** Chunks of a merge. What does not fit into a file is given back, and is the first chunk of the next one. */
export class DividedChunks<Chunk extends Uint8Array> implements AsyncDisposable {
  readonly #chunks: AsyncIterator<Chunk>
  readonly #onEnd: () => void
  #rest: Chunk | undefined
  #isEnded = false

  /** `onEnd` is called after the last chunk. */
  constructor(chunks: AsyncIterable<Chunk>, onEnd: () => void = () => undefined) {
    this.#chunks = chunks[Symbol.asyncIterator]()
    this.#onEnd = onEnd
  }

  /** Whether there may be another chunk. */
  get hasMore(): boolean {
    return this.#rest !== undefined || !this.#isEnded
  }

  /** The next chunk, or what was given back of the last one; undefined after the end. */
  async next(): Promise<Chunk | undefined> {
    const rest = this.#rest
    this.#rest = undefined
    if (rest !== undefined || this.#isEnded) return rest
    const next = await this.#chunks.next()
    if (next.done !== true) return next.value
    this.#isEnded = true
    this.#onEnd()
    return undefined
  }

  giveBack(rest: Chunk): void {
    this.#rest = rest
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chunks.return?.()
  }
}
