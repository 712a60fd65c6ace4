/** Why a text is no time: what it looks like, and what to write instead. */
import { quote } from '../query-parameters.ts'
import { TIME_FORM_EXAMPLES } from './time-forms.ts'

/** The problem and its remedy, to follow the name of the parameter. */
export function refusedTime(text: string, unit: string | undefined): string {
  const problem =
    HINTS.find(([pattern]) => pattern.test(text))?.[1] ??
    (unit === undefined ? 'is not in a form that is understood' : `is not a time in ${unit}`)
  return `${quote(text)} ${problem}. A time is written as one of: ${TIME_FORM_EXAMPLES}`
}

/** The first that matches counts. */
const HINTS: readonly (readonly [pattern: RegExp, problem: string])[] = [
  [
    /^(rt)?(now(\(\))?)?([-+ ]?\d{1,9}[a-zA-Z]{0,9})?[/@][a-zA-Z]/,
    'rounds to a unit, which is not supported: give today, yesterday or a date',
  ],
  [
    /^((now)?[-+ ]?\d{1,9} ?[a-zA-Z]{1,9}( ago)?|(now)?[-+ ]\d{1,9})$/,
    'is not a relative time: give one number with s, m, h, d or w, such as -15m',
  ],
  [
    /^\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}(?!\d)/,
    'has a date whose day and month may be either way round: put the year first, such as 2026-11-02 09:01',
  ],
  [/^T?\d{1,2}:\d{2}/, 'has no date: put it first, such as 2026-11-02 09:01'],
  [
    /^([A-Z][a-z]{2} )?[A-Z][a-z]{2} {1,2}\d{1,2} \d{2}:\d{2}(:\d{2})?$/,
    'has no year: write 2026-11-02 09:01',
  ],
  [/[0-9] ?[AaPp][Mm]\b/, 'has a 12-hour clock: write hours from 00 to 23'],
  [/^\d{1,5}[.,]\d{1,15}$/, 'is no epoch time: spreadsheets count days in this way; write 2026-11-02 09:01'],
  [/^[-+]?\d{1,20}([.,]\d{1,20})?[eE][-+]?\d{1,3}$/, 'has an exponent: write all digits'],
  [/^\d{1,20}[.,]\d{1,30}$/, 'has a fraction that is no whole number of nanoseconds'],
  [/:\d{2}[.,]\d{10}/, 'has a fraction that is finer than nanoseconds'],
  [
    /^.{1,60}\d ?[A-Z]{2,5}( \d{4})?$/,
    'has a time zone that is not clear from its letters: write an offset such as +01:00, or leave it out and give TSZone',
  ],
]
