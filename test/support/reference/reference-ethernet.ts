/** The simplest parser of an Ethernet frame's content, for the references of vendors' clocks. */

/** The content at `offset` of a frame. */
export interface EthernetContent {
  readonly etherType: number
  readonly offset: number
}

/** After all 802.1Q tags; undefined if the frame ends before. */
export function ethernetContent(frame: Buffer): EthernetContent | undefined {
  for (let offset = 14; offset <= frame.length; offset += 4) {
    const etherType = frame.readUInt16BE(offset - 2)
    if (etherType !== 0x8100) return { etherType, offset }
  }
  return undefined
}

/** Largest whole number that is not above numerator / denominator. `denominator` is above 0. */
export function floorDivide(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator
  return numerator % denominator < 0n ? quotient - 1n : quotient
}

/** The distance |a - b|. */
export function distance(a: bigint, b: bigint): bigint {
  return a < b ? b - a : a - b
}

/**
 * Time between two readings of a counter of `bits` bits that ticks every `unit`: of all values that its wraps allow,
 * the one nearest to `expectedNs`, in nanoseconds rounded down.
 */
export function counterDistance(
  { from, to, bits }: { readonly from: bigint; readonly to: bigint; readonly bits: bigint },
  unit: { readonly nanos: bigint; readonly ticks: bigint },
  expectedNs: bigint,
): bigint {
  const wrap = 1n << bits
  const expectedTicks = floorDivide(expectedNs * unit.ticks, unit.nanos)
  const wraps = floorDivide(expectedTicks - (to - from), wrap)
  const candidates = [-1n, 0n, 1n, 2n].map((more) =>
    floorDivide((to - from + (wraps + more) * wrap) * unit.nanos, unit.ticks),
  )
  return candidates.reduce((best, candidate) =>
    distance(candidate, expectedNs) < distance(best, expectedNs) ? candidate : best,
  )
}
