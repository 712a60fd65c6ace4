/** The header Server-Timing: how long an answer took up to its head, and parts of that. */
import type { ServerResponse } from 'node:http'

export class ServerTiming {
  readonly #startedMs = performance.now()
  readonly #parts: string[] = []
  readonly #res: ServerResponse

  /** Adds the times to the head of `res`, whatever writes it. */
  constructor(res: ServerResponse) {
    this.#res = res
    const writeHead = res.writeHead.bind(res) as (...args: unknown[]) => ServerResponse
    res.writeHead = (...args: unknown[]) => {
      if (!res.headersSent) res.setHeader('Server-Timing', this.#text())
      return writeHead(...args)
    }
  }

  /** Since the request arrived. */
  get elapsedMs(): number {
    return performance.now() - this.#startedMs
  }

  /**
   * Has no effect after the head. `name` is a token. It must not reveal anything that the caller may not know, such as
   * names of devices.
   */
  note(name: string, ms: number): void {
    if (!this.#res.headersSent) this.#parts.push(entry(name, ms))
  }

  #text(): string {
    return [...this.#parts, entry('total', this.elapsedMs)].join(', ')
  }
}

function entry(name: string, ms: number): string {
  return `${name};dur=${ms.toFixed(1)}`
}
