/**
 * The approximate distribution of the packets of finished segments over time: what a request that covers many segments
 * needs from each. They are counted once, from their tallies, and cached, since a finished segment does not change.
 */
import { LRUCache } from 'lru-cache'
import { countPackets } from '../../native/addon.ts'
import type { StreamFiles } from '../../native/download-options.ts'
import type { Amount } from './activity-buckets.ts'

/**
 * The length of a part of a segment's time is a power of two milliseconds, chosen so that there are at most this many
 * parts.
 */
const PARTS_MAX = 256
const MILLISECOND_NS = 1_000_000n
const BYTES_PER_PART = 8
/** Size of the entry itself, with its name. */
const ENTRY_BYTES = 512
/** About 12,000 segments, which are 12 TB if they are full. */
const BYTES_MAX = 33_554_432

/** A finished segment as recorded in its capture's log. */
export interface FinishedSegment {
  /** Path without extension. */
  readonly path: string
  /** Only this segment. */
  readonly files: StreamFiles
  readonly minNs: bigint
  readonly maxNs: bigint
  readonly packets: bigint
}

export interface SegmentProfile {
  /** Part i begins at beginNs + i * partNs. */
  readonly beginNs: bigint
  readonly partNs: bigint
  readonly packets: Uint32Array
  readonly bytes: Uint32Array
}

interface KeptProfile {
  readonly of: FinishedSegment
  readonly profile: SegmentProfile
}

export class SegmentProfiles {
  readonly #kept = new LRUCache<string, KeptProfile>({
    maxSize: BYTES_MAX,
    sizeCalculation: ({ profile }) => profile.packets.length * BYTES_PER_PART + ENTRY_BYTES,
  })
  /** Several callers may examine the same segments. */
  readonly #running = new Map<string, Promise<SegmentProfile>>()

  /** The cached profile; undefined: call count(). */
  kept(segment: FinishedSegment): SegmentProfile | undefined {
    const kept = this.#kept.get(segment.path)
    // A capture of the same name may have been imported again.
    return kept !== undefined && areSame(kept.of, segment) ? kept.profile : undefined
  }

  /** Fails like countPackets. */
  async count(segment: FinishedSegment): Promise<SegmentProfile> {
    const key = `${segment.path} ${segment.minNs} ${segment.maxNs} ${segment.packets}`
    const running = this.#running.get(key) ?? countSegment(segment)
    this.#running.set(key, running)
    try {
      const profile = await running
      this.#kept.set(segment.path, { of: segment, profile })
      return profile
    } finally {
      this.#running.delete(key)
    }
  }
}

function areSame(a: FinishedSegment, b: FinishedSegment): boolean {
  return a.minNs === b.minNs && a.maxNs === b.maxNs && a.packets === b.packets
}

/** The amount in the parts from `first` up to `end`. */
export function amountOf({ packets, bytes }: SegmentProfile, first: number, end: number): Amount {
  const sum = { packets: 0, bytes: 0 }
  for (let index = first; index < end; index++) {
    sum.packets += packets[index] ?? 0
    sum.bytes += bytes[index] ?? 0
  }
  return sum
}

async function countSegment({ files, minNs, maxNs }: FinishedSegment): Promise<SegmentProfile> {
  const beginNs = minNs - (minNs % MILLISECOND_NS)
  let partNs = MILLISECOND_NS
  while ((maxNs - beginNs) / partNs >= BigInt(PARTS_MAX)) partNs *= 2n
  const parts = Number((maxNs - beginNs) / partNs) + 1
  const boundariesNs = Array.from({ length: parts + 1 }, (_, index) => beginNs + BigInt(index) * partNs)
  const counts = await countPackets({ streams: [files], boundariesNs })
  return {
    beginNs,
    partNs,
    packets: Uint32Array.from(counts, ({ packets }) => Number(packets)),
    bytes: Uint32Array.from(counts, ({ bytes }) => Number(bytes)),
  }
}
