/** Reads a date and time as people and other programs write it, without deciding which instant it is. */
import { isRealTime, type LocalTime } from './local-time.ts'

export interface WrittenTime {
  readonly local: LocalTime
  /** Nanoseconds of the fraction of the second. */
  readonly fractionNs: bigint
  /** Whether the text has a time of day; otherwise it is a date alone. */
  readonly hasTime: boolean
  /** Whether it is the leap second :60; `local` then has :59. */
  readonly isLeapSecond: boolean
  /** What must be subtracted for UTC; undefined for a local time. */
  readonly offsetMs: number | undefined
  /** Whether it has exactly the form YYYYMMDD_HHMMSS of the API. */
  readonly isApiForm: boolean
}

/**
 * undefined if the text is no date; 'unreal' if it has the form of one, but no calendar has it (30 February, 25:00, or
 * a wrong day of the week).
 */
export function readWrittenTime(text: string): WrittenTime | 'unreal' | undefined {
  const parts = numericParts(text) ?? namedMonthParts(text)
  return parts === undefined ? undefined : timeOf(parts, API_FORM.test(text))
}

interface Parts {
  readonly year: string
  readonly month: string
  readonly day: string
  readonly time?: string | undefined
  readonly zone?: string | undefined
  readonly weekday?: string | undefined
}

const API_FORM = /^\d{8}_\d{6}$/

const DATE_WITH_SEPARATORS =
  /^(?:(?<weekday>[A-Z][a-z]{2}) )?(?<year>\d{4})(?<separator>[-/])(?<month>\d{2})\k<separator>(?<day>\d{2})(?:[Tt_ ](?<time>\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)(?<zone>.{1,7})?)?$/
const DATE_WITHOUT_SEPARATORS =
  /^(?<year>\d{4})(?<month>\d{2})(?<day>\d{2})[Tt_ ](?<time>\d{4}(?:\d{2}(?:[.,]\d{1,9})?)?)(?<zone>.{1,7})?$/

function numericParts(text: string): Parts | undefined {
  const match = DATE_WITH_SEPARATORS.exec(text) ?? DATE_WITHOUT_SEPARATORS.exec(text)
  return match?.groups as Parts | undefined
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** "Nov  2, 2026 09:01:00.5 UTC": Wireshark. */
const MONTH_DAY_YEAR =
  /^(?<month>[A-Z][a-z]{2}) {1,2}(?<day>\d{1,2}), (?<year>\d{4}) (?<time>\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?)(?<zone> .{1,7})?$/
/** "Mon Nov  2 09:01:00 UTC 2026": date, ctime. */
const MONTH_DAY_TIME =
  /^(?<weekday>[A-Z][a-z]{2}) (?<month>[A-Z][a-z]{2}) {1,2}(?<day>\d{1,2}) (?<time>\d{2}:\d{2}:\d{2})(?<zone> [-+A-Z\d:]{1,7})? (?<year>\d{4})$/
/** "Mon, 02 Nov 2026 09:01:00 +0000": mail, HTTP. */
const DAY_MONTH_YEAR =
  /^(?:(?<weekday>[A-Z][a-z]{2}), )?(?<day>\d{1,2}) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) (?<time>\d{2}:\d{2}:\d{2})(?<zone> .{1,7})?$/
/** "02/Nov/2026:09:01:00 +0000": logs of web servers and proxies. */
const LOGGED =
  /^(?<day>\d{2})\/(?<month>[A-Z][a-z]{2})\/(?<year>\d{4}):(?<time>\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?)(?<zone> .{1,7})?$/
const NAMED_MONTH_FORMS = [MONTH_DAY_YEAR, MONTH_DAY_TIME, DAY_MONTH_YEAR, LOGGED]

function namedMonthParts(text: string): Parts | undefined {
  const form = NAMED_MONTH_FORMS.find((known) => known.test(text))
  const parts = form?.exec(text)?.groups as Parts | undefined
  const month = MONTHS.indexOf(parts?.month ?? '') + 1
  return parts === undefined || month === 0 ? undefined : { ...parts, month: String(month) }
}

const CLOCK = /^(\d{2}):?(\d{2})(?::?(\d{2})(?:[.,](\d{1,9}))?)?$/
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

function timeOf(parts: Parts, isApiForm: boolean): WrittenTime | 'unreal' | undefined {
  const offsetMs = offsetOf(parts.zone)
  if (offsetMs === 'unknown') return undefined
  const [, hour = '0', minute = '0', second = '0', fraction = ''] = CLOCK.exec(parts.time ?? '') ?? []
  const isLeapSecond = second === '60'
  const local: LocalTime = {
    year: Number(parts.year),
    month: Number(parts.month),
    day: Number(parts.day),
    hour: Number(hour),
    minute: Number(minute),
    second: isLeapSecond ? 59 : Number(second),
  }
  if (!isRealTime(local)) return 'unreal'
  if (parts.weekday !== undefined && parts.weekday !== WEEKDAYS[weekdayOf(local)]) return 'unreal'
  const hasTime = parts.time !== undefined
  return { local, fractionNs: BigInt(fraction.padEnd(9, '0')), hasTime, isLeapSecond, offsetMs, isApiForm }
}

function weekdayOf({ year, month, day }: LocalTime): number {
  return new Date(Date.UTC(year, month - 1, day)).getUTCDay()
}

/** A "+" that the caller did not write as %2B arrives as a space: then the offset must have minutes. */
const OFFSET =
  /^ ?(?:(?<utc>Z|z|UTC|GMT)|(?<sign>[-+])(?<hours>\d{2})(?::?(?<minutes>\d{2}))?| (?<lostHours>\d{2}):?(?<lostMinutes>\d{2}))$/

function offsetOf(zone: string | undefined): number | 'unknown' | undefined {
  if (zone === undefined) return undefined
  const groups = OFFSET.exec(zone)?.groups
  if (groups === undefined) return 'unknown'
  if (groups.utc !== undefined) return 0
  const hours = Number(groups.hours ?? groups.lostHours)
  const minutes = Number(groups.minutes ?? groups.lostMinutes ?? 0)
  if (hours > 23 || minutes > 59) return 'unknown'
  return (hours * 60 + minutes) * 60_000 * (groups.sign === '-' ? -1 : 1)
}
