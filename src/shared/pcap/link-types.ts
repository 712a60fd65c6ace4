/** Link types in whose packets the engine finds network packets: Ethernet, raw IP, Linux cooked (linkHeaderOf). */
export const NETWORK_LINK_TYPES: ReadonlySet<number> = new Set([1, 12, 101, 113, 228, 229, 276])

/** The bits above are about the frame check sequence. */
const LINK_TYPE_BITS = 0xffff

/** The link type in a link type word. */
export function typeOfWord(word: number): number {
  return word & LINK_TYPE_BITS
}
