/** The range that is marked: begin and end in the address of the page, in nanoseconds or relative to now. */
import { parseQueryTime } from '../../shared/query/query-time.ts'
import { nowNs } from '../base/instants.ts'
import type { TimeView } from './time-view.ts'

/** undefined: none is marked, or what was typed is no time yet. */
export function readSelection(values: Readonly<Record<string, string>>): TimeView | undefined {
  try {
    const fromNs = readEnd('TSBegin', values.TSBegin ?? '', false)
    const toNs = readEnd('TSEnd', values.TSEnd ?? '', true)
    return fromNs <= toNs ? { fromNs, toNs } : undefined
  } catch {
    // Whoever types a time sees beside it what is wrong.
    return undefined
  }
}

function readEnd(parameter: string, text: string, isEnd: boolean): bigint {
  return parseQueryTime(text, { parameter, unit: 'nanos', zone: 'UTC', nowNs: nowNs(), isEnd }).ns
}
