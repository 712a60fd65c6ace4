/**
 * What a device states about its packets in headers and trailers. It is not trusted: malformed statements are ignored.
 */
import type { DownloadQuery } from '../../../shared/query/download/download-query.ts'

type Fields = Readonly<Record<string, string>>

/** What a device states before the first byte. */
export interface DeviceClaims {
  /** The full name of the capture, which the caller may have named by its base name. */
  readonly fileName: string | undefined
  /** "time": packets are in the order of the time by which the device looks them up. */
  readonly order: string | undefined
  /** The time zone in which it interpreted local times. */
  readonly timeZone: string | undefined
  /** Nothing of the range has been removed from this time on. */
  readonly agedOutBeforeNs: bigint | undefined
  /** Segments of the range that are known to have lost packets. */
  readonly damagedSegments: bigint | undefined
}

/** What a device states and shows after the last byte. */
export interface DeviceEnd {
  readonly packets: bigint | undefined
  /** Blocks of packets that were left out as damaged. */
  readonly corruptBlocks: bigint | undefined
  readonly timeFallbacks: bigint | undefined
  readonly latePackets: bigint | undefined
  /** Packets dropped by Dedup. */
  readonly duplicates: bigint | undefined
  readonly isTruncated: boolean | undefined
  readonly nextNs: bigint | undefined
  /** Its answer ended where a truncated one could have ended too: packets may be missing. */
  readonly isUnverified: boolean
}

const ZONE = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/
const ATTACHMENT = /^attachment; filename="([A-Za-z0-9_][A-Za-z0-9._-]{0,199})"$/

export function readClaims(headers: Fields): DeviceClaims {
  const order = headers['capfleet-order'] ?? ''
  const timeZone = headers['capfleet-time-zone'] ?? ''
  const [, fileName] = ATTACHMENT.exec(headers['content-disposition'] ?? '') ?? []
  return {
    fileName,
    order: /^[a-z]{1,16}$/.test(order) ? order : undefined,
    timeZone: ZONE.test(timeZone) ? timeZone : undefined,
    agedOutBeforeNs: wholeNumber(headers['capfleet-aged-out-before']),
    damagedSegments: wholeNumber(headers['capfleet-damaged-segments']),
  }
}

export function readEnd(trailers: Fields): DeviceEnd {
  const truncated = wholeNumber(trailers['capfleet-truncated'])
  return {
    packets: wholeNumber(trailers['capfleet-packets']),
    corruptBlocks: wholeNumber(trailers['capfleet-corrupt-blocks']),
    timeFallbacks: wholeNumber(trailers['capfleet-ts-fallbacks']),
    latePackets: wholeNumber(trailers['capfleet-late-packets']),
    duplicates: wholeNumber(trailers['capfleet-duplicates']),
    isTruncated: truncated === undefined ? undefined : truncated === 1n,
    nextNs: wholeNumber(trailers['capfleet-next-ns']),
    isUnverified: trailers['capfleet-status'] === 'unverified',
  }
}

/** The end of a stream that has not finished: no claims. */
export const NO_END: DeviceEnd = readEnd({})

/**
 * The claims of a merge are those that hold for all: the time since when no device of it has removed anything, and the
 * total of what is damaged.
 */
export function claimsOfMerge(all: readonly DeviceClaims[]): DeviceClaims {
  const times = all.flatMap(({ agedOutBeforeNs }) => agedOutBeforeNs ?? [])
  const [latest] = times.toSorted((a, b) => (a > b ? -1 : 1))
  const damaged = all.flatMap(({ damagedSegments }) => damagedSegments ?? [])
  return {
    fileName: undefined,
    order: undefined,
    timeZone: undefined,
    agedOutBeforeNs: latest,
    damagedSegments: damaged.length === 0 ? undefined : damaged.reduce((sum, count) => sum + count, 0n),
  }
}

/** The end of a merge. It counts the packets, and possibly the limit and the late ones, itself. */
export function endOfMerge(
  all: readonly DeviceEnd[],
  own: Pick<DeviceEnd, 'packets' | 'nextNs' | 'duplicates'> & { readonly latePackets: bigint },
): DeviceEnd {
  const sum = (count: (end: DeviceEnd) => bigint | undefined) =>
    all.reduce((total, end) => total + (count(end) ?? 0n), 0n)
  // A device ends at a limit too. If it alone had packets, only it knows what follows.
  const [first] = all.flatMap(({ nextNs }) => nextNs ?? []).toSorted((a, b) => (a < b ? -1 : 1))
  const nextNs = own.nextNs ?? first
  return {
    packets: own.packets,
    corruptBlocks: sum(({ corruptBlocks }) => corruptBlocks),
    timeFallbacks: sum(({ timeFallbacks }) => timeFallbacks),
    latePackets: sum(({ latePackets }) => latePackets) + own.latePackets,
    duplicates: own.duplicates,
    isTruncated: nextNs !== undefined,
    nextNs,
    isUnverified: all.some(({ isUnverified }) => isUnverified),
  }
}

/** How the part of a device whose stream has ended ends; "damaged" means fewer packets than were recorded. */
export function statusOfEnd({
  corruptBlocks = 0n,
  isTruncated,
  isUnverified,
}: DeviceEnd): 'complete' | 'truncated' | 'damaged' | 'unverified' {
  if (corruptBlocks > 0n) return 'damaged'
  if (isUnverified) return 'unverified'
  return isTruncated === true ? 'truncated' : 'complete'
}

/** Whether packets are in the order of the time by which the device looks them up, according to the device. */
export function isOrdered({ kind, timeSource }: DownloadQuery, { order }: DeviceClaims): boolean {
  return kind !== 'single' && timeSource === 'nic' && order === 'time'
}

function wholeNumber(text: string | undefined): bigint | undefined {
  return text !== undefined && /^\d{1,20}$/.test(text) ? BigInt(text) : undefined
}
