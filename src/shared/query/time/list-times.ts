/** From and To of lists: the same forms of a time as TSBegin and TSEnd, in a unit that its digits imply. */
import { TEXT } from '../parameter-types.ts'
import type { ParameterRows } from '../query-parameters.ts'
import { parseQueryTime, type QueryTime, type TimeContext } from './query-time.ts'
import { TIME_FORM_EXAMPLES } from './time-forms.ts'

/** What the description of a time says that has no TSUnit and no TSZone. */
export const TIME_FORMS_WITHOUT_UNIT = `In any form of TSBegin: ${TIME_FORM_EXAMPLES}; without a zone, in the zone of the program that answers.`

/** The rows of From and To, which select what `says`. */
export function listTimeRows({ from, to }: { readonly from: string; readonly to: string }) {
  return {
    from: {
      name: 'From',
      says: `${from} ${TIME_FORMS_WITHOUT_UNIT}`,
      type: TEXT,
      defaultSays: 'no limit',
      example: '-1h',
    },
    to: { name: 'To', says: `${to} ${TIME_FORMS_WITHOUT_UNIT}`, type: TEXT, defaultSays: 'no limit' },
  } as const satisfies ParameterRows
}

export interface ListTimes {
  readonly fromNs: bigint | undefined
  readonly toNs: bigint | undefined
  /** The zone of the context, if one of the times was read in it. */
  readonly timeZone: string | undefined
}

/** Fails with bad-parameter, which names the parameter. */
export function readListTimes(
  { from, to }: { readonly from?: string | undefined; readonly to?: string | undefined },
  { zone, nowNs }: { readonly zone: string; readonly nowNs: bigint },
): ListTimes {
  const context = { zone, nowNs }
  const begin = from === undefined ? undefined : timeOf(from, { ...context, parameter: 'From', isEnd: false })
  const end =
    to === undefined
      ? undefined
      : timeOf(to, { ...context, parameter: 'To', isEnd: true, beginNs: begin?.ns })
  const isLocal = begin?.isLocal === true || end?.isLocal === true
  return { fromNs: begin?.ns, toNs: end?.ns, timeZone: isLocal ? zone : undefined }
}

/** The text of From or To that means this nanosecond; programs that only take nanoseconds understand it, too. */
export function listTimeText(ns: bigint): string {
  const digits = String(ns)
  return digits.length >= AMBIGUOUS_DIGITS.least && digits.length <= AMBIGUOUS_DIGITS.most
    ? `${digits}${SUFFIX}`
    : digits
}

/** Dates have 8 digits, nanoseconds since 2001 have 19. */
const AMBIGUOUS_DIGITS = { least: 8, most: 18 }
/** With it, a number is in nanoseconds, however many digits it has. */
const SUFFIX = 'ULL'

function timeOf(text: string, context: Omit<TimeContext, 'unit' | 'hasNoUnit'>): QueryTime {
  const unit = text.endsWith(SUFFIX) ? 'nanos' : undefined
  return parseQueryTime(text, { ...context, unit, hasNoUnit: true })
}
