import type { ServerResponse } from 'node:http'
import type { Encoding } from '../query/query-values.ts'

export type CompressedEncoding = Exclude<Encoding, 'none'>

/** An element of the format that holds nothing: decoders pass over it. */
export const EMPTY_ELEMENTS = {
  gzip: Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0),
  zstd: Uint8Array.of(0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0),
} as const satisfies Record<CompressedEncoding, Uint8Array>

const BEGIN_AFTER_MS = 1_000
const REPEAT_EVERY_MS = 5_000

export interface EarlyAnswerOptions {
  readonly encoding: CompressedEncoding
  readonly head: () => Record<string, string>
  readonly onChunk: (chunk: Uint8Array) => void
}

/**
 * Keeps a client that waits, and the proxies before it, from giving up: after a moment the head goes
 * out and then an empty element every few seconds. From then on no status is possible. Dispose it
 * when the body begins.
 */
export class EarlyAnswer implements Disposable {
  readonly #res: ServerResponse
  readonly #options: EarlyAnswerOptions
  #timer: NodeJS.Timeout

  constructor(res: ServerResponse, options: EarlyAnswerOptions) {
    this.#res = res
    this.#options = options
    this.#timer = setTimeout(() => this.#begin(), BEGIN_AFTER_MS)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #begin(): void {
    this.#res.writeHead(200, this.#options.head())
    this.#fill()
    this.#timer = setInterval(() => this.#fill(), REPEAT_EVERY_MS)
  }

  #fill(): void {
    const chunk = EMPTY_ELEMENTS[this.#options.encoding]
    this.#options.onChunk(chunk)
    this.#res.write(chunk)
  }
}
