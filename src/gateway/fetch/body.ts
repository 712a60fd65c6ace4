/** What fetching makes: the bytes of a download, and what is known of them. Who sends or keeps them is none of its business. */
import type { ErrorCode } from '../../shared/base/error.ts'
import type { Encoding } from '../../shared/query/query-values.ts'
import type { BodyRead } from '../device/device-stream.ts'
import type { DeviceClaims } from './device-claims.ts'
import type { ReopenStep } from './leased-streams.ts'
import type { BodyPlaces } from './position.ts'

/** Dispose it, once, when nobody looks at a chunk any more, also not the kernel: their memory is used again. */
export interface Body extends Disposable {
  readonly encoding: Encoding
  readonly facts: BodyFacts
  /**
   * The bytes for one that pulls. Read once, to the end: only then the body is whole. Throws when it cannot be
   * completed. A chunk is valid until the second next() after it.
   */
  readonly chunks: AsyncIterable<Uint8Array>
  /**
   * The bytes for one that wants them as they come, in place of `chunks`; only the body of one device has it.
   * Hands every part to the sink and resolves when the body is whole. Rejects as `chunks` throws, and with what
   * the sink throws. REQUIRES: parts are released in time (device-stream.ts).
   */
  readonly pour?: (sink: (part: BodyPart) => void) => Promise<void>
  /**
   * Bytes that, put after what was given so far, leave the format inside an element, so that a cut is
   * seen in the file itself. Empty when it is inside one already.
   */
  cutMark(): Uint8Array
  /** Live; final when the body is whole. */
  result(): BodyResult
  /** Where the body can be continued behind what was given so far; undefined for a compressed body. */
  places(): BodyPlaces | undefined
  /** Whether park() and unpark() may be called. */
  readonly isParkable: boolean
  /** Closes the streams of all devices. What was read still goes out; then the body waits for unpark(). */
  park(): void
  /** Goes on where park() stopped, byte for byte; a device that cannot be continued fails the body. */
  unpark(reopen: ReopenStep): void
}

/** A read of the body, or what a continued one brought of it. */
export interface BodyPart extends Pick<BodyRead, 'data' | 'release'> {
  /** The same bytes as the device framed them; undefined when they join what another stream brought. */
  readonly framing?: Pick<BodyRead, 'framed' | 'open'>
}

/** What is known of a body before its first byte. */
export interface BodyFacts {
  /** What the devices say of their packets, taken together. */
  readonly claims: DeviceClaims
  /** The clocks of the devices of a merge, as far as they are known. */
  readonly clocks: ReadonlyMap<string, DeviceClock>
  /** With OnError=partial: the devices that are left out from the begin. */
  readonly missing: readonly MissingPart[]
}

/** The half-open range whose packets of a device are missing. */
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

/** Counts are undefined where no device told and nobody counted. */
export interface BodyResult {
  readonly packets: bigint | undefined
  /** Bytes of the body that were given so far, as they are sent. */
  readonly bytes: bigint
  readonly corruptBlocks: bigint | undefined
  readonly timeFallbacks: bigint | undefined
  readonly latePackets: bigint | undefined
  /** Packets that Dedup left out; undefined without it. */
  readonly duplicates: bigint | undefined
  /** Whether MaxBytes or MaxPackets left packets out, of which the first has the timestamp nextNs. */
  readonly isTruncated: boolean | undefined
  readonly nextNs: bigint | undefined
  /** What came of each device, in the order of the plan. */
  readonly perDevice: readonly DeviceResult[]
}

export interface ReportedError {
  readonly code: ErrorCode
  readonly detail: string
}

/** What one device brought. */
export interface DeviceResult {
  readonly device: string
  /** How its part ends, provided that the body becomes whole. */
  readonly status: 'complete' | 'truncated' | 'damaged' | 'unverified' | 'missing'
  /** Delivered packets; undefined when a device whose packets nobody counts did not tell. */
  readonly packets: bigint | undefined
  /** Body bytes of the device that went into the download. */
  readonly bytes: bigint
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
  /** Blocks of packets that the device left out, because they are damaged; undefined when it did not tell. */
  readonly corruptBlocks: bigint | undefined
  /** How often the device was asked again after it broke off. */
  readonly retries: number
  readonly outOfOrder: number
  /** The device vouches for packets in the order of time. */
  readonly isOrdered: boolean
  /** How long a merge waited for this device alone. */
  readonly stalledMs: number
  readonly clock: DeviceClock | undefined
  /** With OnError=partial: what of it is missing. */
  readonly missing: Omit<MissingPart, 'device'> | undefined
  readonly error: ReportedError | undefined
}
