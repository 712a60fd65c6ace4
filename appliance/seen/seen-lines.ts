/** The answer of a search for addresses, line by line: SEEN_LINES. */
import type { AddressCount } from '../../native/address-counter.ts'
import type { SeenSpan } from '../../native/address-search.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { SearchRange } from './seen-streams.ts'

export function addressLine(address: string, spans: readonly SeenSpan[], count?: AddressCount): string {
  return line({
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
  return line({ checkedBytes: String(checkedBytes) })
}

export interface SeenEnd {
  readonly addresses: number
  readonly complete: boolean
  readonly agedOutBeforeNs: bigint | undefined
  readonly otherLinkTypes: readonly number[]
}

export function endLine({ agedOutBeforeNs, ...end }: SeenEnd): string {
  return line({
    end: true,
    ...end,
    ...(agedOutBeforeNs === undefined ? {} : { agedOutBeforeNs: String(agedOutBeforeNs) }),
  })
}

/** The last line of an answer that cannot be finished. */
export function failureLine(error: unknown): string {
  const [code, detail] =
    error instanceof CapfleetError
      ? [error.code, error.message]
      : ['internal-error', 'the request hit an internal error; the log has the details']
  return line({ error: { code, detail } })
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

function line(value: object): string {
  return `${JSON.stringify(value)}\n`
}
