/** A write for every access line would cost much of what a small request costs. */
const WRITE_CHARACTERS = 4_096
/** How long a line may wait for others. */
const WRITE_INTERVAL_MS = 200

/**
 * Passes lines on some at a time. SonicBoom would too, but it counts the bytes of all that wait with
 * each line.
 */
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
