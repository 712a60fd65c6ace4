/**
 * What is known of a merge from the counts of its devices: exactly what it delivers, or at most that. A merge takes the
 * packets of each device in their order, and ends before the first packet that exceeds a limit.
 */
import {
  MAX_CAPTURED_LENGTH,
  PCAP_HEADER_BYTES,
  RECORD_HEADER_BYTES,
} from '../../../shared/pcap/pcap-sizes.ts'
import { partOfMerge } from '../../fleet/plan/plan.ts'
import type { BoundedQuery } from '../../fleet/plan/within-bounds.ts'

/** What a device or a merge delivers; the bytes are those of the whole PCAP. */
interface Amount {
  readonly packets: bigint
  readonly bytes: bigint
}

/** As a device writes them. */
interface Counted {
  readonly packets: string
  readonly bytes: string
}

const HEADER_BYTES = BigInt(PCAP_HEADER_BYTES)
const RECORD_BYTES_MIN = BigInt(RECORD_HEADER_BYTES)

/**
 * The packets of a device that are counted. A merge never takes more than MaxPackets of one device, unless some of them may
 * be dropped as duplicates. Those that fit into MaxBytes would not show whether the device has more.
 */
export function countedPart(query: BoundedQuery): BoundedQuery {
  const { dedupNs, maxPackets } = query
  return { ...partOfMerge(query), maxPackets: dedupNs === undefined ? maxPackets : undefined }
}

/** One file has one header. */
export function sumOf(counts: readonly Counted[]): Amount {
  return {
    packets: counts.reduce((sum, { packets }) => sum + BigInt(packets), 0n),
    bytes: counts.reduce((sum, { bytes }) => sum + BigInt(bytes) - HEADER_BYTES, HEADER_BYTES),
  }
}

/** `counts` are those of countedPart(query). If it is not exact, the merge delivers at most that. */
export function mergedCount(
  counts: readonly Counted[],
  query: Pick<BoundedQuery, 'maxPackets' | 'maxBytes' | 'dedupNs' | 'tsMaxNs' | 'sliceBytes'>,
): Amount & { readonly isExact: boolean } {
  const { maxPackets, maxBytes, dedupNs, tsMaxNs } = query
  const sum = sumOf(counts)
  const isCut = isMore(sum.packets, maxPackets) || isMore(sum.bytes, maxBytes)
  if (isCut) return { ...atMost(sum, query), isExact: false }
  // One packet has no duplicate. A single device has applied TSMax itself.
  const isWithoutDuplicates = dedupNs === undefined || sum.packets <= 1n
  const isOfOne = counts.filter(({ packets }) => packets !== '0').length <= 1
  return { ...sum, isExact: isWithoutDuplicates && (tsMaxNs === undefined || isOfOne) }
}

/** Each packet that the merge leaves out has the bytes of its record, and so has each that it delivers. */
function atMost(
  sum: Amount,
  { maxPackets, maxBytes, sliceBytes }: Parameters<typeof mergedCount>[1],
): Amount {
  const recordBytesMax = RECORD_BYTES_MIN + BigInt(sliceBytes ?? MAX_CAPTURED_LENGTH)
  const cutBytes = excess(sum.bytes, maxBytes)
  const packets = least(
    sum.packets - (cutBytes + recordBytesMax - 1n) / recordBytesMax,
    maxPackets,
    maxBytes === undefined ? undefined : (maxBytes - HEADER_BYTES) / RECORD_BYTES_MIN,
  )
  const bytes = least(
    sum.bytes - RECORD_BYTES_MIN * (sum.packets - packets),
    maxBytes,
    HEADER_BYTES + recordBytesMax * packets,
  )
  return { packets, bytes }
}

function isMore(value: bigint, limit: bigint | undefined): boolean {
  return limit !== undefined && value > limit
}

function excess(value: bigint, limit: bigint | undefined): bigint {
  return limit !== undefined && value > limit ? value - limit : 0n
}

function least(value: bigint, ...limits: readonly (bigint | undefined)[]): bigint {
  return limits.reduce<bigint>(
    (least, limit) => (limit !== undefined && limit < least ? limit : least),
    value,
  )
}
