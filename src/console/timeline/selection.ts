/** The selected range: begin and end in the page's address, in nanoseconds or relative to now. */
import { parseQueryTime } from '../../shared/query/time/query-time.ts'
import { nowNs } from '../base/instants.ts'
import type { TimeView } from './time-view.ts'

/** undefined: none is selected, or the typed text is not a valid time yet. */
export function readSelection(values: Readonly<Record<string, string>>): TimeView | undefined {
  try {
    const { TSBegin = '', TSEnd = '', TSZone: zone = 'UTC' } = values
    const fromNs = readEnd('TSBegin', TSBegin, { zone })
    const toNs = readEnd('TSEnd', TSEnd, { zone, beginNs: fromNs })
    return fromNs <= toNs ? { fromNs, toNs } : undefined
  } catch {
    // While typing a time, the user sees the error next to it.
    return undefined
  }
}

/** The begin, or the end of the range that begins at `beginNs`. */
function readEnd(
  parameter: string,
  text: string,
  { zone, beginNs }: { readonly zone: string; readonly beginNs?: bigint },
): bigint {
  const isEnd = beginNs !== undefined
  return parseQueryTime(text, { parameter, unit: 'nanos', zone, nowNs: nowNs(), beginNs, isEnd }).ns
}
