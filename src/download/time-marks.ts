import { crc32 } from 'node:zlib'
import type { DownloadPlan } from '../fleet/plan.ts'
import { PCAP_HEADER_BYTES, RECORD_HEADER_BYTES } from '../pcap/pcap-header.ts'
import type { GatewayOptions } from '../query/gateway-options.ts'
import type { DeviceReport } from './download-report.ts'

/** All packets before `bytes` of the whole body are earlier than `fromNs`, all after it are not. */
export interface TimeMark {
  readonly bytes: string
  readonly fromNs: string
  /** CRC-32 of the `headBytes` after it, one packet at least: what is asked for again must begin with them. */
  readonly headBytes: number
  readonly crc32: number
}

const MARK_EVERY_BYTES = 1_048_576n
const MARKS_MAX = 64
/** A checksum of more costs time at every mark. */
const HEAD_BYTES_MAX = 16_384
const CAPTURED_LENGTH_OFFSET = 8

/** Whether the rest of the body is what the devices have from some time on, and nothing else. */
export function isOrderedByTime({ kind, query }: DownloadPlan, options: GatewayOptions): boolean {
  const { maxBytes, maxPackets, tsMaxNs } = query
  const limited = maxBytes !== undefined || maxPackets !== undefined || tsMaxNs !== undefined
  const plain = options.dedupNs === undefined && !options.align && query.compression === 'none'
  return kind === 'merge' && query.kind === 'timerange' && query.timeSource === 'nic' && plain && !limited
}

/** Finds places of a merge from which it can be asked for again, instead of from its beginning. */
export class TimeMarks {
  readonly #nanosPerUnit: number
  #marks: TimeMark[] = []
  #nextAt = BigInt(PCAP_HEADER_BYTES)

  constructor(timeResolution: 'nsec' | 'usec') {
    this.#nanosPerUnit = timeResolution === 'nsec' ? 1 : 1_000
  }

  get all(): readonly TimeMark[] {
    return this.#marks
  }

  /** REQUIRES: `chunk` is whole records, and begins at `position` of the whole body. */
  see(chunk: Uint8Array, position: bigint, devices: () => readonly DeviceReport[]): void {
    if (position < this.#nextAt) return
    const mark = this.#firstStep(chunk)
    if (mark === undefined || !devices().every(isInOrder)) return
    this.#nextAt = position + MARK_EVERY_BYTES
    if (this.#marks.length >= MARKS_MAX) this.#marks = this.#marks.filter((_, index) => index % 2 === 1)
    const head = chunk.subarray(mark.offset, mark.offset + HEAD_BYTES_MAX)
    this.#marks.push({
      bytes: String(position + BigInt(mark.offset)),
      fromNs: String(mark.fromNs),
      headBytes: head.length,
      crc32: crc32(head),
    })
  }

  /** The first packet of the chunk that is later than the one before it. */
  #firstStep(chunk: Uint8Array): { readonly offset: number; readonly fromNs: bigint } | undefined {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    let before: bigint | undefined
    for (let offset = 0; offset + RECORD_HEADER_BYTES <= chunk.length; ) {
      const ns = this.#timestamp(view, offset)
      if (before !== undefined && ns > before) return { offset, fromNs: ns }
      before = ns
      offset += RECORD_HEADER_BYTES + view.getUint32(offset + CAPTURED_LENGTH_OFFSET, true)
    }
    return undefined
  }

  #timestamp(view: DataView, offset: number): bigint {
    const fractionNs = view.getUint32(offset + 4, true) * this.#nanosPerUnit
    return BigInt(view.getUint32(offset, true)) * 1_000_000_000n + BigInt(fractionNs)
  }
}

/** Only then the rest of its packets is what it holds from a time on. */
export function isInOrder({ status, isOrdered, outOfOrder }: DeviceReport): boolean {
  return status === 'missing' || (isOrdered === true && outOfOrder === 0)
}
