/** A separate write for every access line would be a large part of the cost of a small request. */
const WRITE_CHARACTERS = 4_096
/** How long a line may wait for others. */
const WRITE_INTERVAL_MS = 200

/** Batches lines. SonicBoom would too, but it recounts the bytes of all waiting lines with each new one. */
export class GatheredLines {
  readonly #pass: (lines: string) => void
  #waiting = ''

  constructor(pass: (lines: string) => void) {
    this.#pass = pass
    setInterval(() => this.flush(), WRITE_INTERVAL_MS).unref()
  }

  write(line: string): void {
    this.#waiting += line
    if (this.#waiting.length >= WRITE_CHARACTERS) this.flush()
  }

  flush(): void {
    if (this.#waiting === '') return
    const lines = this.#waiting
    this.#waiting = ''
    this.#pass(lines)
  }
}
