/** Sums of packets and bytes in equal buckets of a time range. */
import type { TimeSpan } from '../store/removed-spans.ts'

const MILLISECOND_NS = 1_000_000n

export interface Amount {
  readonly packets: number
  /** Bytes of the packets as PCAP records: headers and captured bytes. */
  readonly bytes: number
}

export class ActivityBuckets {
  readonly range: TimeSpan
  readonly bucketNs: bigint
  readonly packets: number[]
  readonly bytes: number[]
  /** Whether each bucket contains exactly the packets of its time. */
  isExact = true

  /**
   * Divides the range into at most `most` buckets, fewer if it is not that many nanoseconds long. REQUIRES: the range
   * is not empty.
   */
  constructor(range: TimeSpan, most: number) {
    const lengthNs = range.endNs - range.beginNs
    this.range = range
    this.bucketNs = roundedUp(lengthNs, BigInt(most))
    const count = Number(roundedUp(lengthNs, this.bucketNs))
    this.packets = new Array<number>(count).fill(0)
    this.bytes = new Array<number>(count).fill(0)
  }

  /** Adds the amount in the span if the span lies within one bucket; returns whether it does. */
  addToOne({ beginNs, endNs }: TimeSpan, amount: Amount): boolean {
    const { range, bucketNs } = this
    if (beginNs < range.beginNs || endNs > range.endNs) return false
    const index = (beginNs - range.beginNs) / bucketNs
    if (endNs > range.beginNs + (index + 1n) * bucketNs) return false
    this.#put(Number(index), amount)
    return true
  }

  /**
   * Adds the amount in the span. If it contains an edge of a bucket, its packets are assumed to be spread evenly over
   * its time: each is counted in one bucket, or outside the range, but possibly not where it belongs.
   */
  add(span: TimeSpan, amount: Amount): void {
    if (amount.packets === 0 || this.addToOne(span, amount)) return
    const { range, bucketNs } = this
    const beginNs = later(span.beginNs, range.beginNs)
    const endNs = earlier(span.endNs, range.endNs)
    if (beginNs >= endNs) return
    const first = Number((beginNs - range.beginNs) / bucketNs)
    const last = Number((endNs - 1n - range.beginNs) / bucketNs)
    this.isExact = false
    let before = upTo(beginNs, span, amount)
    for (let index = first; index <= last; index++) {
      const edgeNs = earlier(range.beginNs + BigInt(index + 1) * bucketNs, endNs)
      const until = upTo(edgeNs, span, amount)
      this.#put(index, { packets: until.packets - before.packets, bytes: until.bytes - before.bytes })
      before = until
    }
  }

  /** The first edge of a bucket after the time, or undefined if it is after all of them. */
  edgeBehind(ns: bigint): bigint | undefined {
    const { beginNs, endNs } = this.range
    if (ns < beginNs) return beginNs
    if (ns >= endNs) return undefined
    return earlier(beginNs + ((ns - beginNs) / this.bucketNs + 1n) * this.bucketNs, endNs)
  }

  /**
   * Whole milliseconds at which stored packets are to be counted, so that each bucket is exact except for the
   * milliseconds that contain its edges, which are separate.
   */
  get countedAtNs(): readonly bigint[] {
    const { beginNs, endNs } = this.range
    const at: bigint[] = []
    const put = (ns: bigint) => {
      if (at.length === 0 || ns > (at.at(-1) ?? 0n)) at.push(ns)
    }
    for (let index = 0; index <= this.packets.length; index++) {
      const edgeNs = earlier(beginNs + BigInt(index) * this.bucketNs, endNs)
      const wholeNs = edgeNs - (edgeNs % MILLISECOND_NS)
      put(wholeNs)
      if (wholeNs !== edgeNs) put(wholeNs + MILLISECOND_NS)
    }
    return at
  }

  #put(index: number, { packets, bytes }: Amount): void {
    this.packets[index] = (this.packets[index] ?? 0) + packets
    this.bytes[index] = (this.bytes[index] ?? 0) + bytes
  }
}

/** The part of the span's amount before `ns`, in whole packets and bytes. */
function upTo(ns: bigint, { beginNs, endNs }: TimeSpan, { packets, bytes }: Amount): Amount {
  const share = Number(ns - beginNs) / Number(endNs - beginNs)
  return { packets: Math.round(packets * share), bytes: Math.round(bytes * share) }
}

function roundedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
