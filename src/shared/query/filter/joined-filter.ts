/** Combines BPF filters. */
import { CapfleetError } from '../../base/error.ts'

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

/** Words of pcap-filter(7) after which the rest of the expression looks deeper into the packet. */
const SHIFTING = /\b(vlan|mpls|pppoes|geneve|vxlan)\b/i

/** Whether what follows the filter in an expression looks deeper into the packet. */
export function looksDeeper(filter: string): boolean {
  return SHIFTING.test(filter)
}

/**
 * The filter that matches what matches all of `forced` and `asked`. The forced ones come first, and of these the one
 * that shifts the offsets which everything after it uses comes last, so that none changes what another forced one
 * means. Fails with out-of-bounds if several of them shift. REQUIRES: each is enclosed, and no forced one is blank, which
 * would match everything.
 */
export function joinFilters(forced: readonly string[], asked: string | undefined): string | undefined {
  if (forced.some((filter) => filter.trim() === '')) throw new Error('a forced filter is blank')
  const distinct = [...new Set(forced)]
  const shifting = distinct.filter((filter) => SHIFTING.test(filter))
  if (shifting.length > 1) {
    throw new CapfleetError(
      'out-of-bounds',
      'more than one of your forced filters uses vlan, mpls, pppoes, geneve or vxlan, which cannot be combined without changing ' +
        'what the others mean; use a token whose filter has none of these words',
    )
  }
  const inOrder = [...distinct.filter((filter) => !SHIFTING.test(filter)), ...shifting]
  const filters = asked === undefined ? inOrder : [...inOrder, asked]
  if (filters.length <= 1) return filters[0]
  return filters.map((filter) => `(${filter})`).join(' and ')
}
