/**
 * The result of fetching: the bytes of a download and what is known about them. How they are sent or stored is decided
 * elsewhere.
 */
import type { ErrorCode } from '../../../shared/base/error.ts'
import type { Encoding } from '../../../shared/query/download/query-values.ts'
import type { BodyRead } from '../../device/device-stream.ts'
import type { DeviceClaims } from '../proof/device-claims.ts'
import type { ReopenStep } from '../stream/leased-streams.ts'
import type { BodyPlaces } from './position.ts'

/** Dispose it exactly once, when no chunk is in use any more, not even by the kernel: their memory is reused. */
export interface Body extends Disposable {
  readonly encoding: Encoding
  readonly facts: BodyFacts
  /**
   * The bytes, for a consumer that pulls. Iterate once, to the end: only then is the body complete. Throws if it
   * cannot be completed. A chunk is valid until the second next() after it.
   */
  readonly chunks: AsyncIterable<Uint8Array>
  /**
   * The bytes, for a consumer that wants them as they arrive, instead of `chunks`; only the body of a single device
   * has it. Passes every part to the sink and resolves when the body is complete. Rejects with what `chunks` would
   * throw, and with what the sink throws. REQUIRES: parts are released in time (device-stream.ts).
   */
  readonly pour?: (sink: (part: BodyPart) => void) => Promise<void>
  /**
   * Bytes that, appended to what was returned so far, leave the format inside an element, so that the cut is visible
   * in the file itself. Empty if it is inside one already.
   */
  cutMark(): Uint8Array
  /** Live; final when the body is complete. */
  result(): BodyResult
  /** Where the body can be continued after what was returned so far; undefined for a compressed body. */
  places(): BodyPlaces | undefined
  /** Set if it is the rest of a larger body. */
  readonly continues?: ContinuedBody
  /** Whether park() and unpark() may be called. */
  readonly isParkable: boolean
  /** Closes the streams of all devices. What has been read is still returned; then the body waits for unpark(). */
  park(): void
  /** Continues where park() stopped, byte for byte; a device that cannot be continued fails the body. */
  unpark(reopen: ReopenStep): void
}

/** Where in a larger body a body begins. */
export interface ContinuedBody {
  /** Bytes of the larger body before it. */
  readonly bytes: number
  /** Bytes of a file header that precede the rest, because that is a file of its own. */
  readonly headerBytes: number
}

/** A read of the body, or the remainder of one after the body was continued. */
export interface BodyPart extends Pick<BodyRead, 'data' | 'release'> {
  /** The same bytes as the device framed them; undefined if they continue what another stream provided. */
  readonly framing?: Pick<BodyRead, 'framed' | 'open'>
}

/** What is known about a body before its first byte. */
export interface BodyFacts {
  /** What the devices state about their packets, combined. */
  readonly claims: DeviceClaims
  /** The clocks of the devices of a merge, as far as known. */
  readonly clocks: ReadonlyMap<string, DeviceClock>
  /** With OnError=partial: the devices that are left out from the start. */
  readonly missing: readonly MissingPart[]
}

/** The half-open range for which packets of a device are missing. */
export interface MissingPart {
  readonly device: string
  readonly fromNs: bigint
  readonly toNs: bigint
}

/** A device's clock minus the gateway's, and the bound of the error. */
export interface DeviceClock {
  readonly offsetNs: bigint
  readonly errorNs: bigint
}

/** Counts are undefined if no device reported them and nobody counted. */
export interface BodyResult {
  readonly packets: bigint | undefined
  /** Bytes of the body returned so far, as they are sent. */
  readonly bytes: bigint
  readonly corruptBlocks: bigint | undefined
  readonly timeFallbacks: bigint | undefined
  readonly latePackets: bigint | undefined
  /** Packets dropped by Dedup; undefined without it. */
  readonly duplicates: bigint | undefined
  /** Whether MaxBytes or MaxPackets cut off packets, the first of which has the timestamp nextNs. */
  readonly isTruncated: boolean | undefined
  readonly nextNs: bigint | undefined
  /** The result of each device, in the order of the plan. */
  readonly perDevice: readonly DeviceResult[]
}

export interface ReportedError {
  readonly code: ErrorCode
  readonly detail: string
}

/** The result of one device. */
export interface DeviceResult {
  readonly device: string
  /** How its part ends, provided that the body is completed. */
  readonly status: 'complete' | 'truncated' | 'damaged' | 'unverified' | 'missing'
  /** Delivered packets; undefined if the device did not report the number and nobody counted. */
  readonly packets: bigint | undefined
  /** Body bytes of the device that went into the download. */
  readonly bytes: bigint
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
  /** Blocks of packets that the device left out as damaged; undefined if it did not report the number. */
  readonly corruptBlocks: bigint | undefined
  /** How often the device was retried after it broke off. */
  readonly retries: number
  readonly outOfOrder: number
  /** Whether the device guarantees that packets are in time order. */
  readonly isOrdered: boolean
  /** How long a merge waited for this device alone. */
  readonly stalledMs: number
  readonly clock: DeviceClock | undefined
  /** With OnError=partial: what is missing from it. */
  readonly missing: Omit<MissingPart, 'device'> | undefined
  readonly error: ReportedError | undefined
}
