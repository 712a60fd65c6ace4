/** The progress of a bench, on stderr: on a terminal a line below the rows, elsewhere one line for each row. */
const REDRAW_MS = 1_000
const EMPTY_LINE = '\r\u001b[K'

export class BenchProgress {
  readonly #rows: number
  readonly #startMs = performance.now()
  #done = 0
  #timer: NodeJS.Timeout | undefined

  constructor(rows: number) {
    this.#rows = rows
  }

  begin(name: string): void {
    if (!process.stderr.isTTY) {
      process.stderr.write(`bench: ${this.#text(name)}\n`)
      return
    }
    this.#draw(name)
    this.#timer = setInterval(() => this.#draw(name), REDRAW_MS)
  }

  /** Clears the line, because the row's own line is printed next. */
  end(): void {
    this.#done += 1
    clearInterval(this.#timer)
    if (process.stderr.isTTY) process.stderr.write(EMPTY_LINE)
  }

  #draw(name: string): void {
    process.stderr.write(EMPTY_LINE + this.#text(name))
  }

  #text(name: string): string {
    const elapsedS = (performance.now() - this.#startMs) / 1000
    const leftS = (elapsedS / Math.max(1, this.#done)) * (this.#rows - this.#done)
    const eta = this.#done === 0 ? '' : ` ETA ${Math.ceil(leftS)} s`
    return `${name} ${this.#done}/${this.#rows} ${Math.round(elapsedS)} s${eta}`
  }
}
