/**
 * The head of an HTTP/1.1 answer. Everything that two parsers could read in two ways is refused,
 * so that a device (or who sits between) cannot make us and the client see different bodies.
 */

export interface ResponseHead {
  readonly status: number
  readonly isHttp11: boolean
  /** Names in lower case; several lines of one name are joined by ", ". */
  readonly headers: Readonly<Record<string, string>>
  /** Where the body ends. */
  readonly framing: BodyLength
}

/** "chunked", a number of bytes, or "until-close". */
export type BodyLength = 'chunked' | 'until-close' | number

/** What is wrong, to continue "device X ...". */
export class MalformedAnswer extends Error {}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n|$)/
const HEADER_LINE = /([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\t\x20-\x7e\x80-\xff]*)(?:\r\n|$)/y
/** More than any file has; well below where a double is no longer exact. */
const LENGTH = /^\d{1,15}$/

/** `text` is the head in latin1, without the empty line. Throws MalformedAnswer. */
export function parseResponseHead(text: string): ResponseHead {
  const match = STATUS_LINE.exec(text)
  if (match === null) throw new MalformedAnswer('sent no HTTP/1.1 status line')
  const headers = parseHeaderLines(text, match[0].length)
  const isHttp11 = match[1] === '1'
  return { status: Number(match[2]), isHttp11, headers, framing: framingOf(headers, isHttp11) }
}

/** Header or trailer lines from `begin` on. One that goes on from the line before (obs-fold) is malformed. */
export function parseHeaderLines(text: string, begin: number): Readonly<Record<string, string>> {
  // Without a prototype: "__proto__" is a valid name.
  const headers: Record<string, string> = Object.create(null)
  HEADER_LINE.lastIndex = begin
  while (HEADER_LINE.lastIndex < text.length) {
    const match = HEADER_LINE.exec(text)
    if (match === null) throw new MalformedAnswer('sent a malformed header line')
    const [, name = '', value = ''] = match
    const key = name.toLowerCase()
    const earlier = headers[key]
    headers[key] = earlier === undefined ? value.trimEnd() : `${earlier}, ${value.trimEnd()}`
  }
  return headers
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
