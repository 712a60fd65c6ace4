/**
 * Converts the text of a time to epoch nanoseconds: TSBegin, TSEnd, Start and Stop, and what is typed into the page.
 * time-forms.ts lists the forms.
 */
import { CapfleetError } from '../../base/error.ts'
import { dayStartMs, instantsOf, type LocalTime, localTimeAt } from './local-time.ts'
import { refusedTime } from './refused-time.ts'
import { readWrittenTime, type WrittenTime } from './written-time.ts'

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
  /** If the parameter has that unit by definition: what to write if a number that looks like another unit is meant. */
  readonly unitIsMeant?: string
  /** Whether the request cannot have TSUnit. */
  readonly hasNoUnit?: true
  /** IANA name for local times; undefined if only the device knows its zone. */
  readonly zone: string | undefined
  /** "now" of relative times. */
  readonly nowNs: bigint
  /** What "+10m" counts from; undefined where the text may not have that form. */
  readonly beginNs?: bigint | undefined
  /**
   * Whether it is the end of a range. If a clock shows a local time twice, a begin means the first occurrence and an
   * end the last; an end after all times that PCAP can represent means no limit.
   */
  readonly isEnd: boolean
}

export interface QueryTime {
  readonly ns: bigint
  /** The unit that was used; undefined for all forms other than epoch times and YYYYMMDD_HHMMSS. */
  readonly unit: TimeUnit | undefined
  /** Whether the zone of the context decided which instant it is. */
  readonly isLocal: boolean
  /** If that zone is unknown: the time as YYYYMMDD_HHMMSS, for the device; `ns` is then the earliest or latest possible. */
  readonly localText?: string
}

/** Fails with bad-parameter naming the parameter, what is wrong, and the forms. */
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

function parseForm(text: string, context: TimeContext): QueryTime {
  const time = parseEpoch(text, context) ?? parseRelative(text, context) ?? parseWritten(text, context)
  if (time !== undefined) return time
  throw bad(context, refusedTime(text, context.unit))
}

/** "@" means seconds. Scripts append ULL, the suffix of C, to nanoseconds. */
const EPOCH = /^(@?)(\d{1,20})(?:(ULL)|[.,](\d{1,9}))?$/

function parseEpoch(text: string, context: TimeContext): QueryTime | undefined {
  const { parameter, unit: given, hasNoUnit } = context
  const [, at, digits, suffix, fraction = ''] = EPOCH.exec(text) ?? []
  if (digits === undefined) return undefined
  if (at !== '@' && given === 'YYYYMMDD_HHMMSS') return undefined
  const detected = detectUnit(digits)
  const unit = at === '@' ? 'sec' : ((given as EpochUnit | undefined) ?? detected)
  const unitNs = NANOS_PER_UNIT[unit]
  const parts = 10n ** BigInt(fraction.length)
  const fractionNs = (BigInt(fraction) * unitNs) / parts
  if (fractionNs * parts !== BigInt(fraction) * unitNs) return undefined
  const ns = BigInt(digits) * unitNs + fractionNs
  if (at !== '@' && given === undefined) refuseImprobable({ parameter, text, unit, digits, ns, hasNoUnit })
  if (at !== '@' && suffix === undefined) refuseOtherUnit(text, digits, context)
  return { ns, unit, isLocal: false }
}

/** Seconds where a parameter takes nanoseconds would select nothing, or the wrong packets, without a word. */
function refuseOtherUnit(text: string, digits: string, { parameter, unit, unitIsMeant }: TimeContext): void {
  if (unitIsMeant === undefined) return
  const looksLike = detectUnit(digits)
  if (looksLike === unit || !isProbable(BigInt(digits) * NANOS_PER_UNIT[looksLike])) return
  throw bad({ parameter }, `takes ${unit}, but "${text}" looks like ${looksLike}; ${unitIsMeant}`)
}

/** `ns` as Start and Stop take it: with the suffix where the number alone looks like another unit. */
export function exactNs(ns: bigint): string {
  const unit = detectUnit(String(ns))
  return unit !== 'nanos' && isProbable(ns * NANOS_PER_UNIT[unit]) ? `${ns}ULL` : String(ns)
}

/** A time in RFC 3339 with all nanoseconds. */
export function rfc3339Of(ns: bigint): string {
  const seconds = new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length)
  return `${seconds}.${String(ns % 1_000_000_000n).padStart(9, '0')}Z`
}

function isProbable(ns: bigint): boolean {
  return ns >= DETECTED_MIN_NS && ns <= TIME_LIMIT_NS
}

/** Digits of an epoch time, in the unit that their number implies. */
export function epochNs(digits: string): bigint {
  return BigInt(digits) * NANOS_PER_UNIT[detectUnit(digits)]
}

/** By the number of digits: 9-11 seconds, 12-14 milliseconds, 15-17 microseconds, else nanoseconds. */
function detectUnit(digits: string): EpochUnit {
  const { length } = BigInt(digits).toString()
  if (length >= 9 && length <= 11) return 'sec'
  if (length >= 12 && length <= 14) return 'msecs'
  if (length >= 15 && length <= 17) return 'usecs'
  return 'nanos'
}

/** 1990: no packet was captured before by any program whose files exist, and shorter numbers are mistakes. */
const DETECTED_MIN_NS = 631_152_000n * NANOS_PER_UNIT.sec
/** Nanoseconds of 1990 to 2001 have 18 digits. A shorter or longer number stands for the start or end of all times. */
const LATE_DIGITS = 18
const DATE_OF_DIGITS = /^(199\d|20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$/

interface DetectedTime {
  readonly parameter: string
  readonly text: string
  readonly unit: EpochUnit
  readonly digits: string
  readonly ns: bigint
  readonly hasNoUnit: true | undefined
}

/** A number without a unit that is more likely something else, such as a date without separators. */
function refuseImprobable({ parameter, text, unit, digits, ns, hasNoUnit }: DetectedTime): void {
  const meansNumber = hasNoUnit === true ? 'append ULL if nanoseconds are meant' : 'give TSUnit'
  if (DATE_OF_DIGITS.test(digits))
    throw bad(
      { parameter },
      `"${text}" is a number of nanoseconds, which would be in 1970; write the date as ${digits.replace(DATE_OF_DIGITS, '$1-$2-$3')}, or ${meansNumber}`,
    )
  const isLimit = unit === 'nanos' && BigInt(digits).toString().length !== LATE_DIGITS
  if (isLimit || isProbable(ns)) return
  throw bad(
    { parameter },
    `"${text}" has ${BigInt(digits).toString().length} digits, so it would be in ${unit}, and outside of 1990 to 2106; ` +
      `${meansNumber}, or write a date and time as 20261102_090100 or 2026-11-02T09:01:00Z`,
  )
}

const SECONDS_PER_SUFFIX: Readonly<Record<string, bigint>> = {
  s: 1n,
  m: 60n,
  h: 3_600n,
  d: 86_400n,
  w: 604_800n,
}

/** "now", "now-6h", "-15m": by the clock; "+10m": from the start. A "+" that is not written as %2B arrives as a space. */
const RELATIVE = /^(now)?(?:([-+ ])(\d{1,9})([smhdw]))?$/
const DAYS_AGO: Readonly<Record<string, number>> = { today: 0, yesterday: 1 }

/** Whether the meaning of the text depends on when it is read, or on the start of its range. */
export function isRelativeTime(text: string): boolean {
  return isDayWord(text) || (text !== '' && RELATIVE.test(text))
}

/** "today" or "yesterday", whose meaning also depends on the zone. */
export function isDayWord(text: string): boolean {
  return Object.hasOwn(DAYS_AGO, text)
}

function parseRelative(text: string, context: TimeContext): QueryTime | undefined {
  if (isDayWord(text)) return parseDayWord(text, context)
  const [matched = '', now, sign, count, suffix = ''] = RELATIVE.exec(text) ?? []
  if (matched === '') return undefined
  const lengthNs = BigInt(count ?? 0) * (SECONDS_PER_SUFFIX[suffix] ?? 0n) * NANOS_PER_UNIT.sec
  if (sign === '-') return { ns: context.nowNs - lengthNs, unit: undefined, isLocal: false }
  if (now !== undefined) return { ns: context.nowNs + lengthNs, unit: undefined, isLocal: false }
  if (context.beginNs === undefined)
    throw bad(
      context,
      `"${text}" counts from the start of the range, which ${context.isEnd ? 'is not known here' : 'this is'}; ` +
        `write now+${count}${suffix} for a time after now`,
    )
  return { ns: context.beginNs + lengthNs, unit: undefined, isLocal: false }
}

function parseDayWord(text: string, { parameter, zone, nowNs }: TimeContext): QueryTime {
  if (zone === undefined)
    throw bad(
      { parameter },
      `"${text}" depends on the zone of the device, which is not known here; add TSZone`,
    )
  const now = localTimeAt(Number(nowNs / NANOS_PER_UNIT.msecs), zone)
  const noon = new Date(Date.UTC(now.year, now.month - 1, now.day - (DAYS_AGO[text] ?? 0)))
  const day = { year: noon.getUTCFullYear(), month: noon.getUTCMonth() + 1, day: noon.getUTCDate() }
  return { ns: BigInt(dayStartMs(day, zone)) * NANOS_PER_UNIT.msecs, unit: undefined, isLocal: true }
}

function parseWritten(text: string, context: TimeContext): QueryTime | undefined {
  const written = readWrittenTime(text)
  if (written === undefined) return undefined
  if (written === 'unreal') throw bad(context, `is not a valid date and time, got "${text}"`)
  const { isApiForm, offsetMs } = written
  if (isApiForm && isNumberUnit(context.unit)) return undefined
  const unit = isApiForm ? 'YYYYMMDD_HHMMSS' : undefined
  if (offsetMs === undefined && context.zone === undefined)
    return { unit, isLocal: true, ...unknownInstant(text, written, context) }
  const wholeNs = BigInt(instantMs(text, written, context)) * NANOS_PER_UNIT.msecs
  return { ns: wholeNs + written.fractionNs, unit, isLocal: offsetMs === undefined }
}

function isNumberUnit(unit: TimeUnit | undefined): boolean {
  return unit !== undefined && unit !== 'YYYYMMDD_HHMMSS'
}

/** A device of any maker understands YYYYMMDD_HHMMSS, and nothing finer. */
function unknownInstant(
  text: string,
  { local, fractionNs, isLeapSecond }: WrittenTime,
  { parameter, isEnd }: TimeContext,
): Pick<QueryTime, 'ns' | 'localText'> {
  if (fractionNs > 0n || isLeapSecond)
    throw bad(
      { parameter },
      `"${text}" is finer than a local time of a device, which has whole seconds; add TSZone or an offset such as +01:00`,
    )
  const two = (value: number): string => String(value).padStart(2, '0')
  const date = `${String(local.year).padStart(4, '0')}${two(local.month)}${two(local.day)}`
  const localText = `${date}_${two(local.hour)}${two(local.minute)}${two(local.second)}`
  return { ns: isEnd ? TIME_LIMIT_NS : 0n, localText }
}

/** Epoch milliseconds of the whole second. */
function instantMs(text: string, written: WrittenTime, context: TimeContext): number {
  if (!written.isLeapSecond) return wholeSecondMs(text, written, context)
  // As in POSIX, the leap second is the first second of the next day.
  const nextMs = wholeSecondMs(text, written, context) + 1_000
  const next = new Date(nextMs)
  if (nextMs % 86_400_000 === 0 && next.getUTCDate() === 1) return nextMs
  throw bad(
    context,
    `is not a valid date and time: leap seconds are at 23:59:60 UTC at the end of a month, got "${text}"`,
  )
}

function wholeSecondMs(
  text: string,
  { local, hasTime, offsetMs }: WrittenTime,
  context: TimeContext,
): number {
  if (offsetMs !== undefined) return utcMsOf(local) - offsetMs
  const { zone = 'UTC', isEnd } = context
  const instants = hasTime ? instantsOf(local, zone) : [dayStartMs(local, zone)]
  const instant = isEnd ? instants.at(-1) : instants.at(0)
  if (instant !== undefined) return instant
  throw bad(
    context,
    `"${text}" does not exist in ${zone}: the clock is put forward over it; give an earlier or later time`,
  )
}

function utcMsOf({ year, month, day, hour, minute, second }: LocalTime): number {
  return Date.UTC(year, month - 1, day, hour, minute, second)
}

function bad({ parameter }: Pick<TimeContext, 'parameter'>, problem: string): CapfleetError {
  return new CapfleetError('bad-parameter', `${parameter} ${problem}`, { param: parameter })
}
