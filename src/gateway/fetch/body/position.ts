/**
 * Positions in an uncompressed body from which it can be requested again. They are recorded while the body's bytes are
 * returned, so that continuing it requires little to be read again, however much was delivered before.
 */
import { crc32 } from 'node:zlib'
import { RecordCursor } from '../../../shared/pcap/record-cursor.ts'

/** A position, as stored in JSON: values beyond a double's precision are decimal text. */
export interface Position {
  /** Number of bytes of the whole body before the position. */
  readonly bytes: string
  /**
   * All packets before the position are earlier than this, none after it is. null: only a device that skips bytes can
   * find it.
   */
  readonly fromNs: string | null
  /** CRC-32 of the bytes that follow, of this number; a body that is produced again must match it. */
  readonly hashedBytes: number
  readonly crc32: number
  /** How much of the header precedes the position; absent: all of it. */
  readonly headerBytes?: number
}

/** What is recorded of a body so that it can be continued. Positions are ascending. */
export interface BodyPlaces {
  /**
   * The header of the body, in hexadecimal: of pcapng the section header and the interface descriptions so far, or
   * nothing if there is no position.
   */
  readonly header: string
  /** Positions at which packets begin, or blocks of pcapng. */
  readonly positions: readonly Position[]
  /** The position of the last bytes that were returned, wherever they begin. */
  readonly last: Position
  /** Bytes of the body up to the end of the last complete packet that was returned. */
  readonly wholeBytes: string
}

const POSITION_EVERY_BYTES = 1_048_576
/** A checksum of more bytes would cost time at every position. */
const HASHED_BYTES_MAX = 16_384
/** Beyond this number, every second one of the older half is dropped, so that they stay dense near the end. */
const POSITIONS_MAX = 64

export interface Mark {
  readonly offset: number
  readonly fromNs: bigint | null
  /** See Position. */
  readonly headerBytes?: number | undefined
}

/** Records positions of a body while its bytes are returned. */
export class PositionLog {
  #positions: Position[] = []
  #bytes: number
  #nextAt: number
  readonly #last = new LastBytes()

  /** `from` is the offset in the whole body of the first bytes that will be added. */
  constructor(from = 0) {
    this.#bytes = from
    this.#nextAt = from
  }

  /** Bytes of the whole body up to here. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether a position is due within the next bytes. */
  get isDue(): boolean {
    return this.#bytes >= this.#nextAt
  }

  /** Marks that a packet or block begins at `offset` of `next`, the bytes passed to the next add(). */
  mark(next: Uint8Array, { offset, fromNs, headerBytes }: Mark): void {
    const hashed = next.subarray(offset, offset + HASHED_BYTES_MAX)
    this.#nextAt = this.#bytes + POSITION_EVERY_BYTES
    if (this.#positions.length >= POSITIONS_MAX) {
      const isKept = (_: Position, index: number) => index >= POSITIONS_MAX / 2 || index % 2 === 1
      this.#positions = this.#positions.filter(isKept)
    }
    this.#positions.push({
      bytes: String(this.#bytes + offset),
      fromNs: fromNs === null ? null : String(fromNs),
      hashedBytes: hashed.length,
      crc32: crc32(hashed),
      ...(headerBytes === undefined ? {} : { headerBytes }),
    })
  }

  /** Adds the next bytes. */
  add(piece: Uint8Array): void {
    this.#last.add(piece)
    this.#bytes += piece.length
  }

  /** The places as of now. */
  places(header: Uint8Array, wholeBytes = this.#bytes): BodyPlaces {
    const { length } = this.#last
    const last = {
      bytes: String(this.#bytes - length),
      fromNs: null,
      hashedBytes: length,
      crc32: this.#last.crc32(),
    }
    return {
      header: Buffer.from(header).toString('hex'),
      positions: [...this.#positions],
      last,
      wholeBytes: String(wholeBytes),
    }
  }
}

/** Retains the last 16 KiB, which is far cheaper than a checksum of everything. */
class LastBytes {
  /** Not allocated yet: many downloads end before their first byte. */
  #ring = Buffer.alloc(0)
  #end = 0
  length = 0

  add(piece: Uint8Array): void {
    if (this.#ring.length === 0) this.#ring = Buffer.allocUnsafe(HASHED_BYTES_MAX)
    const kept = piece.subarray(Math.max(0, piece.length - HASHED_BYTES_MAX))
    const untilEdge = Math.min(kept.length, HASHED_BYTES_MAX - this.#end)
    this.#ring.set(kept.subarray(0, untilEdge), this.#end)
    this.#ring.set(kept.subarray(untilEdge), 0)
    this.#end = (this.#end + kept.length) % HASHED_BYTES_MAX
    this.length = Math.min(HASHED_BYTES_MAX, this.length + kept.length)
  }

  crc32(): number {
    if (this.length < HASHED_BYTES_MAX) return crc32(this.#ring.subarray(0, this.length))
    return crc32(this.#ring.subarray(0, this.#end), crc32(this.#ring.subarray(this.#end)))
  }
}

/** The first packet of whole records that is later than the one before it, or undefined if there is none. */
export function firstTimeStep(
  records: Uint8Array,
  resolution: 'nsec' | 'usec',
): { readonly offset: number; readonly ns: bigint } | undefined {
  const record = new RecordCursor(records, { nanoseconds: resolution === 'nsec' })
  let before: bigint | undefined
  for (; record.hasHeader; record.at = record.end) {
    const { ns } = record
    if (before !== undefined && ns > before) return { offset: record.at, ns }
    before = ns
  }
  return undefined
}
