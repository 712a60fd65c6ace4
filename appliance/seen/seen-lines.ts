/** The answer of a search for addresses, line by line: SEEN_LINES. */
import type { AddressCount } from '../../native/address-counter.ts'
import type { SeenSpan } from '../../native/address-search.ts'
import { jsonLine } from '../request/json-lines.ts'
import type { SearchRange } from './seen-streams.ts'

export function addressLine(address: string, spans: readonly SeenSpan[], count?: AddressCount): string {
  return jsonLine({
    address,
    ...(count === undefined ? {} : shownCount(count)),
    spans: spans.map(({ firstNs, lastNs }) => ({ fromNs: String(firstNs), toNs: String(lastNs + 1n) })),
  })
}

function shownCount({ packets, bytes, firstNs, lastNs }: AddressCount): object {
  const times = packets === 0n ? {} : { firstNs: String(firstNs), lastNs: String(lastNs) }
  return { packets: String(packets), bytes: String(bytes), ...times }
}

export function progressLine(checkedBytes: bigint): string {
  return jsonLine({ checkedBytes: String(checkedBytes) })
}

export interface SeenEnd {
  readonly addresses: number
  readonly complete: boolean
  readonly agedOutBeforeNs: bigint | undefined
  readonly otherLinkTypes: readonly number[]
}

export function endLine({ agedOutBeforeNs, ...end }: SeenEnd): string {
  return jsonLine({
    end: true,
    ...end,
    ...(agedOutBeforeNs === undefined ? {} : { agedOutBeforeNs: String(agedOutBeforeNs) }),
  })
}

/** The parts of the spans that lie in the range. */
export function spansWithin(
  spans: readonly SeenSpan[],
  { beginNs, endNs }: SearchRange,
): readonly SeenSpan[] {
  return spans
    .filter(({ firstNs, lastNs }) => lastNs >= beginNs && firstNs < endNs)
    .map(({ firstNs, lastNs }) => ({
      firstNs: firstNs < beginNs ? beginNs : firstNs,
      lastNs: lastNs >= endNs ? endNs - 1n : lastNs,
    }))
}
