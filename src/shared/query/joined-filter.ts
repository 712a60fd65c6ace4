/** Combines BPF filters. */

/**
 * Whether a filter stays within parentheses that are put around it. In the filter language of pcap-filter(7) nothing
 * quotes a parenthesis.
 */
export function isEnclosed(filter: string): boolean {
  let depth = 0
  for (const character of filter) {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (depth < 0) return false
  }
  return depth === 0
}

/**
 * The filter that matches what matches all of `forced` and `asked`. The forced ones come first: words such as vlan and
 * mpls shift the offsets that everything after them uses. REQUIRES: each is enclosed, and no forced one is blank,
 * which would match everything.
 */
export function joinFilters(forced: readonly string[], asked: string | undefined): string | undefined {
  if (forced.some((filter) => filter.trim() === '')) throw new Error('a forced filter is blank')
  const filters = asked === undefined ? forced : [...forced, asked]
  if (filters.length <= 1) return filters[0]
  return filters.map((filter) => `(${filter})`).join(' and ')
}
