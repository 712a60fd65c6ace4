/** How a body's bytes are told from what frames them. */
import { ChunkedFraming } from './chunked-framing.ts'
import { NO_OPEN_CHUNK, type OpenChunk } from './open-chunk.ts'
import { type BodyLength, MalformedAnswer } from './response-head.ts'

/** What one read holds of the body. The pieces are parts of that read, or own copies of a few bytes. */
export interface FramedPieces {
  /** The body's own bytes. */
  readonly data: readonly Buffer[]
  /**
   * The same as chunks of HTTP/1.1, to be written one after the other. A chunk may be split over
   * reads. The last chunk is never among them.
   */
  readonly framed: readonly Buffer[]
  /** What is open behind all `framed` pieces so far. */
  readonly open: OpenChunk
}

/** Follows one body from its first byte on. */
export interface BodyFraming {
  /** Whether the body has ended by its framing. */
  readonly ended: boolean
  /** After the end. */
  readonly trailers: Readonly<Record<string, string>>
  /** What is wrong with the bytes so far, also when there are some after the end. */
  readonly fault: MalformedAnswer | undefined
  /** Takes the bytes of the next read; the pieces end before a fault. REQUIRES: no fault so far. */
  walk(bytes: Buffer): FramedPieces
  /** The device has closed its side. Returns whether that is a regular end. */
  closed(): boolean
}

export function framingFor(length: BodyLength): BodyFraming {
  return length === 'chunked' ? new ChunkedFraming() : new PlainFraming(length)
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
    if (data.length < bytes.length) this.fault = new MalformedAnswer('sent more than its Content-Length')
    if (this.#missingBytes !== undefined) this.#missingBytes -= data.length
    if (data.length === 0) return { data: [], framed: [], open: NO_OPEN_CHUNK }
    return { data: [data], framed: [chunkHeader(data.length), data, CRLF], open: NO_OPEN_CHUNK }
  }

  closed(): boolean {
    return this.#missingBytes === undefined || this.#missingBytes === 0
  }
}

function chunkHeader(bytes: number): Buffer {
  return Buffer.from(`${bytes.toString(16)}\r\n`, 'latin1')
}
