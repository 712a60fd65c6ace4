/**
 * The head of an HTTP/1.1 answer: found in the reads that contain it, and parsed. Anything that two parsers could
 * interpret differently is rejected, so that a device (or a man in the middle) cannot make us and the client see
 * different bodies.
 */

export interface ResponseHead {
  readonly status: number
  /** Names in lower case; repeated headers are joined by ", ". */
  readonly headers: Readonly<Record<string, string>>
  /** How the end of the body is found, if the answer has a body. */
  readonly framing: BodyLength
  /** Whether the connection can carry another exchange after this one. */
  readonly keepsConnection: boolean
}

/** "chunked", a number of bytes, or "until-close". */
export type BodyLength = 'chunked' | 'until-close' | number

/** Its message says what is wrong, continuing a sentence that begins with "device X". */
export class MalformedAnswer extends Error {}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n|$)/
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** Maximum length of a body: larger than any file, and still exact as a double. */
const LENGTH = /^\d{1,15}$/

/** `text` is the head in latin1, without the empty line. Throws MalformedAnswer. */
export function parseResponseHead(text: string): ResponseHead {
  const match = STATUS_LINE.exec(text)
  if (match === null) throw new MalformedAnswer('sent no HTTP/1.1 status line')
  const headers = parseHeaderLines(text, match[0].length)
  const isHttp11 = match[1] === '1'
  const status = Number(match[2])
  const framing = framingOf(headers, isHttp11)
  const isKept = isHttp11 && !/\bclose\b/i.test(headers.connection ?? '')
  // A device that announces a body where none is allowed might also send one.
  const mayBringMore = !hasBody({ status }) && framing !== 'until-close' && framing !== 0
  return { status, headers, framing, keepsConnection: isKept && !mayBringMore }
}

/** Whether an answer of this status has a body, if its request was not a HEAD. */
export function hasBody({ status }: Pick<ResponseHead, 'status'>): boolean {
  return status !== 204 && status !== 304
}

/** Parses header or trailer lines starting at `begin`. A folded line (obs-fold) is malformed. */
export function parseHeaderLines(text: string, begin: number): Readonly<Record<string, string>> {
  // No prototype: "__proto__" is a valid name.
  const headers: Record<string, string> = Object.create(null)
  for (let at = begin; at < text.length; ) {
    const end = text.indexOf('\r\n', at)
    const line = end < 0 ? text.slice(at) : text.slice(at, end)
    at = end < 0 ? text.length : end + 2
    const colon = line.indexOf(':')
    const key = line.slice(0, Math.max(colon, 0)).toLowerCase()
    const value = withoutBlanks(line, colon + 1)
    if (!HEADER_NAME.test(key) || !HEADER_VALUE.test(value))
      throw new MalformedAnswer('sent a malformed header line')
    const earlier = headers[key]
    headers[key] = earlier === undefined ? value : `${earlier}, ${value}`
  }
  return headers
}

/** The rest of a line starting at `begin`, without surrounding spaces and tabs. */
function withoutBlanks(line: string, begin: number): string {
  let from = begin
  let to = line.length
  while (from < to && isBlank(line, from)) from += 1
  while (to > from && isBlank(line, to - 1)) to -= 1
  return line.slice(from, to)
}

function isBlank(line: string, at: number): boolean {
  return line[at] === ' ' || line[at] === '\t'
}

function framingOf(headers: Readonly<Record<string, string>>, isHttp11: boolean): BodyLength {
  const { 'transfer-encoding': coding, 'content-length': length } = headers
  if (coding !== undefined) {
    if (length !== undefined) throw new MalformedAnswer('sent both Content-Length and Transfer-Encoding')
    if (!isHttp11 || coding.toLowerCase() !== 'chunked')
      throw new MalformedAnswer('sent a transfer encoding other than chunked')
    return 'chunked'
  }
  if (length === undefined) return 'until-close'
  if (!LENGTH.test(length)) throw new MalformedAnswer('sent a malformed Content-Length')
  return Number(length)
}

/** Limit for all heads together, including interim answers (1xx). */
export const HEAD_BYTES_MAX = 16_384
const NOTHING = Buffer.alloc(0)

/** Finds the head of an answer in the reads that contain it. */
export class HeadCollector {
  #collected: Buffer = NOTHING
  #begin = 0

  /**
   * Consumes the next read. Returns the final answer's head and where in `bytes` its body begins, or undefined while
   * the head is incomplete; `bytes` is not retained. Throws MalformedAnswer.
   */
  take(bytes: Buffer): { readonly head: ResponseHead; readonly bodyFrom: number } | undefined {
    const earlierBytes = this.#collected.length
    const more = bytes.subarray(0, HEAD_BYTES_MAX - earlierBytes)
    // Nearly every head arrives in one read, followed by much of the body.
    const collected = earlierBytes === 0 ? more : Buffer.concat([this.#collected, more])
    for (;;) {
      const end = collected.indexOf('\r\n\r\n', this.#begin, 'latin1')
      if (end < 0) break
      const head = parseResponseHead(collected.toString('latin1', this.#begin, end))
      this.#begin = end + 4
      if (head.status === 101) throw new MalformedAnswer('switched protocols without being asked')
      if (head.status >= 200) return { head, bodyFrom: this.#begin - earlierBytes }
    }
    this.#collected = earlierBytes === 0 ? Buffer.from(collected) : collected
    if (collected.length < HEAD_BYTES_MAX) return undefined
    throw new MalformedAnswer(`sent more than ${HEAD_BYTES_MAX} bytes of headers`)
  }
}
