/** Separates a body's bytes from their framing, and frames them again for a client. */
import { type BodyLength, MalformedAnswer, parseHeaderLines } from './response-head.ts'

/** An HTTP/1.1 chunk that has been started: what must be sent before another chunk can begin. */
export interface OpenChunk {
  /** Number of body bytes that the chunk still lacks. */
  readonly dataBytes: number
  /** The missing part of the chunk's closing CRLF. */
  readonly lineEnd: string
}

export const NO_OPEN_CHUNK: OpenChunk = { dataBytes: 0, lineEnd: '' }

/** The part of the body in one read. The pieces are slices of that read, or copies of a few bytes. */
export interface FramedPieces {
  /** The body's own bytes. */
  readonly data: readonly Buffer[]
  /**
   * The same bytes as HTTP/1.1 chunks, to be written in order. A chunk may span several reads. Never includes the last
   * chunk.
   */
  readonly framed: readonly Buffer[]
  /** The chunk left open after all `framed` pieces so far. */
  readonly open: OpenChunk
}

/** Parses one body from its first byte. */
export interface BodyFraming {
  /** Whether the framing has marked the end of the body. */
  readonly ended: boolean
  /** The trailers after the body; complete once it has ended. */
  readonly trailers: Readonly<Record<string, string>>
  /** What is wrong with the bytes so far; bytes after the end are an error too. */
  readonly fault: MalformedAnswer | undefined
  /** Parses the bytes of the next read; the pieces end before a fault. REQUIRES: no fault so far. */
  walk(bytes: Buffer): FramedPieces
  /** Handles the device closing its side. Returns whether that is a regular end. */
  closed(): boolean
}

export function framingFor(length: BodyLength): BodyFraming {
  return length === 'chunked' ? new ChunkedFraming() : new PlainFraming(length)
}

/** Frames `data` as the rest of the open chunk plus one more chunk, and returns what is open after that. */
export function framedAfter(
  open: OpenChunk,
  data: readonly Uint8Array[],
): { readonly framed: readonly Uint8Array[]; readonly open: OpenChunk } {
  const framed: Uint8Array[] = []
  const rest: Uint8Array[] = []
  let { dataBytes } = open
  for (const piece of data) {
    const owed = piece.subarray(0, dataBytes)
    const beyond = piece.subarray(owed.length)
    if (owed.length > 0) framed.push(owed)
    if (beyond.length > 0) rest.push(beyond)
    dataBytes -= owed.length
  }
  // An empty chunk would mark the end of the body.
  if (rest.length === 0) return { framed, open: { dataBytes, lineEnd: open.lineEnd } }
  const restBytes = rest.reduce((sum, piece) => sum + piece.length, 0)
  framed.push(chunkHeader(restBytes, open.lineEnd), ...rest, CRLF)
  return { framed, open: NO_OPEN_CHUNK }
}

const CRLF = Buffer.from('\r\n')
const NO_TRAILERS = {}

/** A body without chunks: of known length, or until the device closes. */
class PlainFraming implements BodyFraming {
  readonly trailers = NO_TRAILERS
  fault: MalformedAnswer | undefined
  #missingBytes: number | undefined

  constructor(length: number | 'until-close') {
    this.#missingBytes = length === 'until-close' ? undefined : length
  }

  get ended(): boolean {
    return this.#missingBytes === 0
  }

  walk(bytes: Buffer): FramedPieces {
    const data = bytes.subarray(0, this.#missingBytes)
    if (data.length < bytes.length)
      this.fault = new MalformedAnswer('sent more bytes than its Content-Length')
    if (this.#missingBytes !== undefined) this.#missingBytes -= data.length
    if (data.length === 0) return { data: [], framed: [], open: NO_OPEN_CHUNK }
    return { data: [data], framed: [chunkHeader(data.length), data, CRLF], open: NO_OPEN_CHUNK }
  }

  closed(): boolean {
    return this.#missingBytes === undefined || this.#missingBytes === 0
  }
}

function chunkHeader(bytes: number, before = ''): Buffer {
  return Buffer.from(`${before}${bytes.toString(16)}\r\n`, 'latin1')
}

/** Maximum length of a chunk size with extension; no legitimate sender uses longer ones. */
const SIZE_LINE_MAX = 256
const TRAILER_BYTES_MAX = 8_192
const SIZE_LINE = /^([0-9A-Fa-f]{1,12})(?:;[\t\x20-\x7e]*)?$/
const LF = 0x0a
const CR = 0x0d

type State = 'size' | 'data' | 'data-cr' | 'data-lf' | 'trailer' | 'end'

/** The open chunk, by parser state, once a chunk's data is complete. */
const OPEN_LINES: Readonly<Partial<Record<State, OpenChunk>>> = {
  'data-cr': { dataBytes: 0, lineEnd: '\r\n' },
  'data-lf': { dataBytes: 0, lineEnd: '\n' },
}

/** State of the parser within one read. */
interface Walk {
  readonly bytes: Buffer
  position: number
  /** Start of the bytes that may be forwarded and are not in `framed` yet. */
  passedFrom: number
  readonly data: Buffer[]
  readonly framed: Buffer[]
}

/**
 * Parses a chunked body. Chunk headers are forwarded unchanged, once complete; the last chunk and the trailers are
 * held back.
 */
class ChunkedFraming implements BodyFraming {
  trailers: Readonly<Record<string, string>> = {}
  fault: MalformedAnswer | undefined
  #state: State = 'size'
  /** Data bytes of the current chunk still to come. */
  #missingBytes = 0
  /** The beginning of an incomplete line. */
  #line = ''
  #trailerLines: string[] = []
  #trailerBytes = 0

  get ended(): boolean {
    return this.#state === 'end'
  }

  walk(bytes: Buffer): FramedPieces {
    const data: Buffer[] = []
    const framed: Buffer[] = []
    const isOver = this.#state === 'trailer' || this.#state === 'end'
    const walk = { bytes, position: 0, passedFrom: isOver ? bytes.length : 0, data, framed }
    try {
      while (walk.position < bytes.length) this.#step(walk)
    } catch (error) {
      if (!(error instanceof MalformedAnswer)) throw error
      this.fault = error
      this.#pass(walk, walk.position)
      walk.passedFrom = bytes.length
    }
    this.#pass(walk, bytes.length)
    return { data, framed, open: this.#open }
  }

  closed(): boolean {
    return this.ended
  }

  get #open(): OpenChunk {
    if (this.#state === 'data') return { dataBytes: this.#missingBytes, lineEnd: '\r\n' }
    return OPEN_LINES[this.#state] ?? NO_OPEN_CHUNK
  }

  /** Consumes the next element, or the part of it in this read. */
  #step(walk: Walk): void {
    const { bytes, position } = walk
    if (this.#state === 'data') {
      walk.position += Math.min(this.#missingBytes, bytes.length - position)
      walk.data.push(bytes.subarray(position, walk.position))
      this.#missingBytes -= walk.position - position
      if (this.#missingBytes === 0) this.#state = 'data-cr'
    } else if (this.#state === 'size') this.#walkSize(walk)
    else if (this.#state === 'trailer') walk.position = this.#walkTrailer(bytes, position)
    else if (this.#state === 'end') throw new MalformedAnswer('sent bytes after the end of its answer')
    else {
      const expected = this.#state === 'data-cr' ? CR : LF
      if (bytes[position] !== expected)
        throw new MalformedAnswer('sent a chunk that is longer than its declared size')
      this.#state = this.#state === 'data-cr' ? 'data-lf' : 'size'
      walk.position += 1
    }
  }

  /** A chunk header is held back until it is complete, and never forwarded if it is the last chunk's. */
  #walkSize(walk: Walk): void {
    const { bytes, position } = walk
    const held = this.#line
    const end = this.#takeLine(bytes, position, SIZE_LINE_MAX)
    const isLast = end !== undefined && this.#beginChunk() === 0
    if (end === undefined || isLast) {
      this.#pass(walk, position)
      walk.passedFrom = bytes.length
    } else if (held !== '') walk.framed.push(Buffer.from(held, 'latin1'))
    walk.position = end ?? bytes.length
  }

  #pass({ bytes, passedFrom, framed }: Walk, end: number): void {
    if (end > passedFrom) framed.push(bytes.subarray(passedFrom, end))
  }

  #walkTrailer(bytes: Buffer, position: number): number {
    const end = this.#takeLine(bytes, position, TRAILER_BYTES_MAX - this.#trailerBytes)
    if (end === undefined) return bytes.length
    const line = this.#wholeLine()
    this.#trailerBytes += line.length + 2
    if (line !== '') this.#trailerLines.push(line)
    else {
      this.trailers = parseHeaderLines(this.#trailerLines.join('\r\n'), 0)
      this.#state = 'end'
    }
    return end
  }

  /** REQUIRES: a complete line. Returns the size of the chunk that it begins. */
  #beginChunk(): number {
    const match = SIZE_LINE.exec(this.#wholeLine())
    if (match === null) throw new MalformedAnswer('sent a malformed chunk size')
    this.#missingBytes = Number.parseInt(match[1] ?? '', 16)
    this.#state = this.#missingBytes === 0 ? 'trailer' : 'data'
    return this.#missingBytes
  }

  /** Appends bytes to #line up to the next LF; returns the position after it, or undefined if there is none. */
  #takeLine(bytes: Buffer, position: number, limit: number): number | undefined {
    const window = bytes.subarray(position, position + limit - this.#line.length)
    const found = window.indexOf(LF)
    const end = found < 0 ? position + window.length : position + found + 1
    this.#line += bytes.toString('latin1', position, end)
    if (found >= 0) return end
    if (this.#line.length >= limit) throw new MalformedAnswer('sent an endless chunk header or trailer')
    return undefined
  }

  /** The line without its CRLF; a bare LF does not end a line. */
  #wholeLine(): string {
    const line = this.#line
    this.#line = ''
    if (!line.endsWith('\r\n')) throw new MalformedAnswer('sent a line that does not end with CRLF')
    return line.slice(0, -2)
  }
}
