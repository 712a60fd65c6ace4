/** The header Server-Timing: how long an answer took up to its head, and parts of that. */
import { ServerResponse } from 'node:http'

const TIMING = Symbol('timing')

interface TimedResponse extends ServerResponse {
  [TIMING]?: ServerTiming
}

export class ServerTiming {
  readonly #startedMs = performance.now()
  readonly #parts: string[] = []
  readonly #res: ServerResponse

  /** Adds the times to the head of `res`, whatever code writes it. */
  constructor(res: TimedResponse) {
    this.#res = res
    res[TIMING] = this
    // One function for all answers. V8 moves an object to the old generation after `object.name = closure`: a closure
    // for each answer kept its request, 100 KiB with many header lines, until the next collection of the whole heap.
    res.writeHead = writeTimedHead
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

  /** Value of the header. */
  get text(): string {
    return [...this.#parts, entry('total', this.elapsedMs)].join(', ')
  }
}

function writeTimedHead(this: TimedResponse, ...args: unknown[]): ServerResponse {
  const timing = this[TIMING]
  if (timing !== undefined && !this.headersSent) this.setHeader('Server-Timing', timing.text)
  return Reflect.apply(ServerResponse.prototype.writeHead, this, args)
}

function entry(name: string, ms: number): string {
  return `${name};dur=${ms.toFixed(1)}`
}
