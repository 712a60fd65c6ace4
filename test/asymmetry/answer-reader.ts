/**
 * Finds the end of an HTTP answer in the bytes of a connection, for a client that sends many requests over one
 * connection.
 */

export interface Answer {
  readonly status: number
  /** Empty unless it was requested. */
  readonly body: string
}

const HEAD_BYTES_MAX = 1 << 20

export class AnswerReader {
  readonly answer: Promise<Answer>
  readonly #settle = Promise.withResolvers<Answer>()
  readonly #onHead: (head: { readonly status: number }) => void
  readonly #body: Buffer[] | undefined
  /** Part of a head, of a line with a chunk's size, or of the trailers, received so far. */
  #text = ''
  #state: 'head' | 'body' | 'chunk-size' | 'chunk' | 'trailers' | 'until-close' | 'done' = 'head'
  #status = 0
  /** Bytes of the body or of the chunk (including its line end) that are still missing. */
  #leftBytes = 0

  constructor(keepsBody: boolean, onHead: (head: { readonly status: number }) => void) {
    this.answer = this.#settle.promise
    this.#body = keepsBody ? [] : undefined
    this.#onHead = onHead
  }

  /** Throws if the bytes are not HTTP. */
  feed(bytes: Buffer): void {
    for (let rest = bytes; rest.length > 0 && this.#state !== 'done'; ) {
      rest = this.#state === 'body' || this.#state === 'chunk' ? this.#feedData(rest) : this.#feedText(rest)
    }
  }

  #feedData(bytes: Buffer): Buffer {
    const taken = bytes.subarray(0, this.#leftBytes)
    this.#body?.push(taken)
    this.#leftBytes -= taken.length
    if (this.#leftBytes === 0 && this.#state === 'body') this.#end()
    if (this.#leftBytes === 0 && this.#state === 'chunk') this.#state = 'chunk-size'
    return bytes.subarray(taken.length)
  }

  #feedText(bytes: Buffer): Buffer {
    if (this.#state === 'until-close') return bytes.subarray(bytes.length)
    const end = this.#state === 'head' ? '\r\n\r\n' : '\r\n'
    const before = this.#text.length
    this.#text += bytes.toString('latin1')
    const at = this.#text.indexOf(end, Math.max(0, before - end.length))
    if (at < 0) {
      if (this.#text.length > HEAD_BYTES_MAX) throw new Error('a head or line without an end')
      return bytes.subarray(bytes.length)
    }
    const text = this.#text.slice(0, at)
    this.#text = ''
    this.#finishText(text)
    return bytes.subarray(at + end.length - before)
  }

  #finishText(text: string): void {
    if (this.#state === 'head') this.#beginBody(text)
    else if (this.#state === 'chunk-size') this.#beginChunk(text)
    else if (text === '') this.#end()
  }

  #beginChunk(line: string): void {
    const size = Number.parseInt(line, 16)
    if (Number.isNaN(size)) throw new Error('a chunk without a size')
    this.#state = size === 0 ? 'trailers' : 'chunk'
    this.#leftBytes = size + 2
  }

  #beginBody(head: string): void {
    this.#status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
    if (Number.isNaN(this.#status)) throw new Error('no status line')
    // Another head follows.
    if (this.#status < 200) return
    this.#onHead({ status: this.#status })
    const length = /^content-length: *(\d+)/im.exec(head)?.[1]
    if (/^transfer-encoding: *chunked/im.test(head)) this.#state = 'chunk-size'
    else if (length === undefined && this.#status !== 204 && this.#status !== 304) this.#state = 'until-close'
    else {
      this.#state = 'body'
      this.#leftBytes = Number(length ?? 0)
      if (this.#leftBytes === 0) this.#end()
    }
  }

  #end(): void {
    this.#state = 'done'
    this.#settle.resolve({
      status: this.#status,
      body: this.#body === undefined ? '' : Buffer.concat(this.#body).toString(),
    })
  }
}
