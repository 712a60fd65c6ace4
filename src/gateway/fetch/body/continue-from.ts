/**
 * The only way to continue a body after what was delivered, used for a client's Resume and for parked downloads. The
 * devices are asked again from a point shortly before: a single device by bytes (After=), several by time; several in
 * pcapng from the first byte, because its blocks refer to earlier ones. What is received twice is compared with what
 * was delivered and left out.
 */
import { crc32 } from 'node:zlib'
import { CapfleetError } from '../../../shared/base/error.ts'
import { PcapngBoundary } from '../../../shared/pcap/pcapng-boundary.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { isForeign } from '../../device/device-kind.ts'
import { type DownloadPlan, fromBytes, fromTime } from '../../fleet/plan/plan.ts'
import type { Body, DeviceResult } from './body.ts'
import type { BodyPlaces, Position } from './position.ts'

/** How much of a body was delivered. */
export interface Delivered {
  /** Bytes of the whole body. */
  readonly bytes: number
  /** The body's places so far, or undefined if nothing of it was returned. */
  readonly places: BodyPlaces | undefined
}

export interface ContinuedFrom extends Delivered {
  /** Precedes the rest of the body. */
  readonly first: Uint8Array
  /**
   * Whether the rest of a pcapng file is a file of its own, which begins with a section header and interfaces, followed
   * by the first block that was not delivered completely. Default: it continues the file.
   */
  readonly isOwnFile?: boolean
}

/** How the rest of a body is fetched. */
export interface Continuation {
  readonly plan: DownloadPlan
  /** Where in the whole body the new streams' packets begin; 0: their file header is the body's own. */
  readonly startBytes: number
  /** Bytes of the file header with which the new streams begin, if it is not the body's own. */
  readonly headerBytes: number
  readonly rest: Rest
}

/** Plans the request for the rest of the body, from the last place before what is missing. */
export function continueFrom(plan: DownloadPlan, { bytes, places }: Delivered): Continuation {
  // A device that does not support After= starts over; what came before is then dropped here.
  const canSkip = plan.steps.every(({ deviceKind }) => !isForeign(deviceKind))
  const whole = Buffer.from(places?.header ?? '', 'hex')
  // A header that became too long is not kept, so that no block after it can begin a file.
  const isUsable = ({ fromNs, headerBytes = 0 }: Position) =>
    headerBytes <= whole.length && (plan.kind === 'relay' ? canSkip : fromNs !== null)
  const start = places?.positions.findLast((one) => Number(one.bytes) <= bytes && isUsable(one))
  const startBytes = Number(start?.bytes ?? 0)
  const known = places === undefined ? [] : [...places.positions, places.last]
  const devices = plan.steps.map((step) => step.device)
  const header = whole.subarray(0, start?.headerBytes)
  const headerBytes = start === undefined ? 0 : header.length
  const rest = new Rest({ startBytes, headerBytes, bytes, known, devices })
  if (start === undefined) return { plan, startBytes, headerBytes, rest }
  const isOne = plan.kind === 'relay'
  const again = isOne
    ? fromBytes(plan, { bytes: startBytes, header })
    : fromTime(plan, BigInt(start.fromNs ?? 0))
  return { plan: again, startBytes, headerBytes, rest }
}

export interface RestOptions {
  readonly startBytes: number
  readonly headerBytes: number
  /** Bytes of the whole body that were delivered. */
  readonly bytes: number
  /** Places of the whole body. Those before the start are ignored. */
  readonly known: readonly Position[]
  /** The devices to name in errors. */
  readonly devices: readonly string[]
}

/** Extracts the part that was not delivered from a body that is produced again. */
export class Rest {
  readonly #bytes: number
  readonly #devices: readonly string[]
  /** Offset of the next byte in the whole body; the streams' own file header lies before the start. */
  #at: number
  #known: readonly KnownBytes[]

  constructor({ startBytes, headerBytes, bytes, known, devices }: RestOptions) {
    this.#bytes = bytes
    this.#devices = devices
    this.#at = startBytes - headerBytes
    this.#known = known
      .filter((one) => one.hashedBytes > 0 && Number(one.bytes) >= startBytes)
      .map((one) => new KnownBytes(one))
  }

  /** Whether everything that was delivered has been received again. */
  get hasBegun(): boolean {
    return this.#at >= this.#bytes
  }

  /** The undelivered part of the next bytes. Throws aged-out if they differ from what was delivered. */
  take<Piece extends Uint8Array>(piece: Piece): Piece {
    for (const known of this.#known) if (!known.see(piece, this.#at)) throw packetsChanged(this.#devices)
    const delivered = Math.min(piece.length, Math.max(0, this.#bytes - this.#at))
    this.#at += piece.length
    if (this.#known.length > 0) this.#known = this.#known.filter(({ end }) => end > this.#at)
    return piece.subarray(delivered) as Piece
  }

  /** Interprets `error` of the streams: bytes that differ from those that were delivered need not even be packets. */
  meaningOf(error: unknown): unknown {
    const isNoPcap = error instanceof CapfleetError && error.code === 'device-protocol'
    return isNoPcap && !this.hasBegun ? unreadableAgain(this.#devices, error) : error
  }

  /** Called at the end of the body. Throws aged-out if it is too short, bad-parameter if it never was that long. */
  end(): void {
    if (this.#known.length > 0) throw packetsChanged(this.#devices)
    if (this.hasBegun) return
    throw badParameter('Offset', `is ${this.#bytes}, but the whole file has ${this.#at} bytes`)
  }
}

/** Bytes of the whole body whose checksum is known. */
class KnownBytes {
  readonly end: number
  readonly #begin: number
  readonly #crc32: number
  #seen = 0

  constructor(position: Position) {
    this.#begin = Number(position.bytes)
    this.end = this.#begin + position.hashedBytes
    this.#crc32 = position.crc32
  }

  /** Checks bytes that begin at `at`; false if they contradict what is known. */
  see(piece: Uint8Array, at: number): boolean {
    const begin = Math.max(0, this.#begin - at)
    const end = Math.min(piece.length, this.end - at)
    if (begin >= end) return true
    this.#seen = crc32(piece.subarray(begin, end), this.#seen)
    return at + end < this.end || this.#seen === this.#crc32
  }
}

/** The devices now return bytes that differ from before. */
function packetsChanged(devices: readonly string[]): CapfleetError {
  return new CapfleetError(
    'aged-out',
    'the packets already delivered have changed: some were overwritten; request the rest with TSBegin',
    { members: { devices } },
  )
}

/**
 * What was delivered is returned as something that is not a PCAP: other packets, or a device whose answers are
 * damaged.
 */
function unreadableAgain(devices: readonly string[], cause: CapfleetError): CapfleetError {
  return new CapfleetError(
    'aged-out',
    `the packets already delivered cannot be read again, because ${cause.message}; request the rest with TSBegin`,
    { members: { devices }, cause },
  )
}

/**
 * The body without what was delivered, which has been read again when this resolves; `first` precedes the rest. Fails
 * like Rest and like the body.
 */
export async function restOfBody(
  body: Body,
  { rest, startBytes, headerBytes, plan }: Continuation,
  { bytes, first, isOwnFile = false }: Omit<ContinuedFrom, 'places'>,
): Promise<Body> {
  const source = body.chunks[Symbol.asyncIterator]()
  const delivered = isOwnFile ? new DeliveredBlocks(startBytes - headerBytes) : undefined
  const parts: Uint8Array[] = [first]
  while (!rest.hasBegun) {
    const { done, value } = await source.next().catch((error) => {
      throw rest.meaningOf(error)
    })
    if (done === true) {
      rest.end()
      continue
    }
    const missing = rest.take(value)
    delivered?.add(value.subarray(0, value.length - missing.length))
    // A chunk is only valid until the second one after it is requested.
    if (missing.length > 0) parts.push(Buffer.from(missing))
  }
  const begin = delivered === undefined ? first : delivered.header
  const missing = Buffer.concat(delivered === undefined ? parts : [begin, delivered.incomplete, ...parts])
  async function* chunks(): AsyncGenerator<Uint8Array> {
    if (missing.length > 0) yield missing
    for await (const chunk of { [Symbol.asyncIterator]: () => source }) yield rest.take(chunk)
    rest.end()
    // Packets that a device stored after the start, but with an earlier time, are missing.
    const byTime = plan.kind === 'merge' && startBytes > 0
    if (byTime && !body.result().perDevice.every(isInOrder)) {
      throw packetsChanged(plan.steps.map(({ device }) => device))
    }
  }
  return {
    encoding: body.encoding,
    facts: body.facts,
    chunks: chunks(),
    cutMark: () => body.cutMark(),
    // Counts cover only what was produced again.
    result: () => ({ ...body.result(), packets: undefined }),
    places: () => body.places(),
    continues: { bytes: delivered?.wholeBytes ?? bytes, headerBytes: begin.length },
    // A relay can be parked while it pours, not while it is pulled.
    isParkable: body.isParkable && body.pour === undefined,
    park: () => body.park(),
    unpark: (reopen) => body.unpark(reopen),
    [Symbol.dispose]: () => body[Symbol.dispose](),
  }
}

/** More than the interfaces of any fleet take. */
const HEADER_BYTES_MAX = 16 * 2 ** 20

/** What was delivered of a pcapng file: its rest is a file of its own after the header, from an incomplete block on. */
class DeliveredBlocks {
  readonly #boundary = new PcapngBoundary('the file', { headerBytesMax: HEADER_BYTES_MAX })
  readonly #beginBytes: number
  #bytes = 0
  #incomplete: readonly Buffer[] = []

  /** `beginBytes`: offset in the whole body of the first byte that is added, counted back over a header of its own. */
  constructor(beginBytes: number) {
    this.#beginBytes = beginBytes
  }

  add(piece: Uint8Array): void {
    this.#boundary.feed([piece])
    const whole = this.#boundary.wholeBytes - this.#bytes
    this.#bytes += piece.length
    const rest = Buffer.from(piece.subarray(Math.max(0, whole)))
    this.#incomplete = whole > 0 ? [rest] : [...this.#incomplete, rest]
  }

  /** Offset in the whole body of the block that is not complete. */
  get wholeBytes(): number {
    return this.#beginBytes + this.#boundary.wholeBytes
  }

  /** The section header and the interfaces before it. Fails with bad-parameter if they are too many. */
  get header(): Buffer {
    const { header } = this.#boundary
    if (header !== undefined) return header
    throw badParameter('Resume', 'also needs Offset=<size of your file in bytes>: it has too many interfaces')
  }

  get incomplete(): Buffer {
    return Buffer.concat(this.#incomplete)
  }
}

/** Whether the rest of a device's packets is exactly what it holds from some time on. */
export function isInOrder({ status, isOrdered, outOfOrder }: DeviceResult): boolean {
  return status === 'missing' || (isOrdered && outOfOrder === 0)
}
