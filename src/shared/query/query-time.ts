/** Converts the text of TSBegin, TSEnd, Start and Stop to epoch nanoseconds. */
import { CapfleetError } from '../base/error.ts'
import { instantsOf, isRealTime, type LocalTime } from './local-time.ts'

/** PCAP counts seconds in 32 bits: no packet is at or after this instant. */
export const TIME_LIMIT_NS = 4_294_967_296n * 1_000_000_000n

const NANOS_PER_UNIT = { nanos: 1n, usecs: 1_000n, msecs: 1_000_000n, sec: 1_000_000_000n } as const
export type EpochUnit = keyof typeof NANOS_PER_UNIT
export type TimeUnit = EpochUnit | 'YYYYMMDD_HHMMSS'

/** Spellings of TSUnit, and of TSMode where it is a unit. The first four are the documented ones. */
const TIME_UNIT_NAMES: Readonly<Record<string, TimeUnit>> = {
  nanos: 'nanos',
  msecs: 'msecs',
  sec: 'sec',
  YYYYMMDD_HHMMSS: 'YYYYMMDD_HHMMSS',
  nsec: 'nanos',
  usec: 'usecs',
  usecs: 'usecs',
  msec: 'msecs',
}

export const TIME_UNIT_WORDS = Object.keys(TIME_UNIT_NAMES)

/** The unit that `word` means, ignoring case, or undefined for an unknown word. */
export function timeUnitOf(word: string): TimeUnit | undefined {
  const name = TIME_UNIT_WORDS.find((known) => known.toLowerCase() === word.toLowerCase())
  return name === undefined ? undefined : TIME_UNIT_NAMES[name]
}

export interface TimeContext {
  readonly parameter: string
  /** Absent: determined by the form of the text. */
  readonly unit: TimeUnit | undefined
  /** IANA name for the YYYYMMDD_HHMMSS form. */
  readonly zone: string
  /** "now" of relative times. */
  readonly nowNs: bigint
  /**
   * Whether it is the end of a range. If a clock shows a local time twice, a begin means the first occurrence and an
   * end the last; an end after all times that PCAP can represent means no limit.
   */
  readonly isEnd: boolean
}

export interface QueryTime {
  readonly ns: bigint
  /** The unit that was used; undefined for "now", "-15m" and RFC 3339. */
  readonly unit: TimeUnit | undefined
}

/** Fails with bad-parameter naming the parameter and the allowed form. */
export function parseQueryTime(text: string, context: TimeContext): QueryTime {
  const time = parseForm(text, context)
  if (context.isEnd && time.ns > TIME_LIMIT_NS) return { ...time, ns: TIME_LIMIT_NS }
  if (time.ns < 0n || time.ns > TIME_LIMIT_NS) {
    throw bad(
      context,
      `is outside of 1970-01-01 to 2106-02-07T06:28:16Z, the times that PCAP can carry, got "${text}"`,
    )
  }
  return time
}

/**
 * Whether the text is a local time, whose meaning depends on the zone. Fails like parseQueryTime for an invalid one.
 */
export function isLocalTime(text: string, context: Pick<TimeContext, 'parameter' | 'unit'>): boolean {
  const match = LOCAL_TIME.exec(text)
  if (match === null || (context.unit !== undefined && context.unit !== 'YYYYMMDD_HHMMSS')) return false
  if (!isRealTime(localTimeOf(match))) throw bad(context, `is not a valid date and time, got "${text}"`)
  return true
}

/** An integer as the API's scripts write it: digits with an optional C suffix. */
const INTEGER = /^\d{1,20}(ULL)?$/
const LOCAL_TIME = /^(\d{4})(\d{2})(\d{2})_(\d{2})(\d{2})(\d{2})$/

function parseForm(text: string, context: TimeContext): QueryTime {
  const instantNs = parseRelative(text, context.nowNs) ?? parseRfc3339(text)
  if (instantNs !== undefined) return { ns: instantNs, unit: undefined }
  const unit = context.unit ?? detectUnit(text)
  if (unit === 'YYYYMMDD_HHMMSS') return { ns: parseLocal(text, context), unit }
  if (!INTEGER.test(text)) {
    throw bad(context, `must be an integer in ${unit}${otherForms(context.unit)}, got "${clip(text)}"`)
  }
  return { ns: BigInt(text.replace('ULL', '')) * NANOS_PER_UNIT[unit], unit }
}

/** Digits of an epoch time, in the unit that their number implies. */
export function epochNs(digits: string): bigint {
  return BigInt(digits) * NANOS_PER_UNIT[unitOfDigits(digits.length)]
}

/** By the number of digits: 9-11 seconds, 12-14 milliseconds, 15-17 microseconds, else nanoseconds. */
function detectUnit(text: string): TimeUnit {
  if (LOCAL_TIME.test(text)) return 'YYYYMMDD_HHMMSS'
  if (!INTEGER.test(text)) return 'nanos'
  return unitOfDigits(BigInt(text.replace('ULL', '')).toString().length)
}

function unitOfDigits(length: number): EpochUnit {
  if (length >= 9 && length <= 11) return 'sec'
  if (length >= 12 && length <= 14) return 'msecs'
  if (length >= 15 && length <= 17) return 'usecs'
  return 'nanos'
}

const SECONDS_PER_SUFFIX: Readonly<Record<string, bigint>> = { s: 1n, m: 60n, h: 3_600n, d: 86_400n }

/** "-15m": that long before now. */
const BEFORE_NOW = /^-(\d{1,9})([smhd])$/

/** Whether the meaning of the text depends on when it is read. */
export function isRelativeTime(text: string): boolean {
  return text === 'now' || BEFORE_NOW.test(text)
}

function parseRelative(text: string, nowNs: bigint): bigint | undefined {
  if (text === 'now') return nowNs
  const [, count, suffix = ''] = BEFORE_NOW.exec(text) ?? []
  const seconds = SECONDS_PER_SUFFIX[suffix]
  if (count === undefined || seconds === undefined) return undefined
  return nowNs - BigInt(count) * seconds * NANOS_PER_UNIT.sec
}

/** The "+" of the offset arrives as a space if the caller did not write it as %2B. */
const RFC3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt_ ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([-+ ])(\d{2}):(\d{2}))$/

function parseRfc3339(text: string): bigint | undefined {
  const match = RFC3339.exec(text)
  if (match === null) return undefined
  const [, , , , , , , fraction = '', sign = '+', hours = '0', minutes = '0'] = match
  const local = localTimeOf(match)
  if (!isRealTime(local) || Number(hours) > 23 || Number(minutes) > 59) return undefined
  const utcMs = Date.UTC(local.year, local.month - 1, local.day, local.hour, local.minute, local.second)
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1)
  return BigInt(utcMs - offsetMs) * NANOS_PER_UNIT.msecs + BigInt(fraction.padEnd(9, '0'))
}

function parseLocal(text: string, context: TimeContext): bigint {
  const match = LOCAL_TIME.exec(text)
  if (match === null) throw bad(context, `must have the form YYYYMMDD_HHMMSS, got "${clip(text)}"`)
  const local = localTimeOf(match)
  if (!isRealTime(local)) throw bad(context, `is not a valid date and time, got "${text}"`)
  const instants = instantsOf(local, context.zone)
  const instantMs = context.isEnd ? instants.at(-1) : instants.at(0)
  if (instantMs === undefined) {
    throw bad(
      context,
      `"${text}" does not exist in ${context.zone}: the clock is put forward over it; give an earlier or later time`,
    )
  }
  return BigInt(instantMs) * NANOS_PER_UNIT.msecs
}

function localTimeOf(match: readonly (string | undefined)[]): LocalTime {
  const [, year, month, day, hour, minute, second] = match.map(Number)
  return {
    year: year ?? 0,
    month: month ?? 0,
    day: day ?? 0,
    hour: hour ?? 0,
    minute: minute ?? 0,
    second: second ?? 0,
  }
}

function otherForms(unit: TimeUnit | undefined): string {
  return unit === undefined ? ', YYYYMMDD_HHMMSS, RFC 3339 with Z or an offset, "now" or "-15m"' : ''
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}...` : text
}

function bad(context: Pick<TimeContext, 'parameter'>, problem: string): CapfleetError {
  return new CapfleetError('bad-parameter', `${context.parameter} ${problem}`, { param: context.parameter })
}
