/**
 * When the rows of a schedule run: pure arithmetic of calendars and zones.
 *
 * A row starts on each of its days at `start` and stops at the next `stop` on the clock of its zone: past midnight if
 * that is not later in the day, after a whole day if both are equal. A time that the clock shows twice means the first
 * occurrence; a time that it skips means the moment of the skip. Consecutive days without a gap are one run: from
 * 00:00:00 to 24:00:00 on all days means forever.
 */
import { instantsOf, type LocalTime, localTimeAt } from '../../src/shared/query/time/local-time.ts'

/** The days of the week, in the order of Date.getUTCDay. */
export const CAPTURE_DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

export interface ScheduleRow {
  /** The name under which its captures are started. */
  readonly name: string
  /** "HH:MM:SS" */
  readonly start: string
  /** "HH:MM:SS" or "24:00:00" */
  readonly stop: string
  readonly days: readonly (typeof CAPTURE_DAYS)[number][]
  /** IANA name. */
  readonly zone: string
}

/** One run of a row: [startMs, endMs), epoch milliseconds. */
export interface ScheduleRun {
  readonly row: ScheduleRow
  readonly startMs: number
  /** Infinity = it never stops. */
  readonly endMs: number
}

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
/** A run of more days than a week has never ends. */
const ENDLESS_DAYS = 8
const WEEK_DAYS = 7
/** How far ahead rows are compared: a year includes every clock change. */
const COMPARED_WEEKS = 54

/** The run that contains `nowMs`; rows do not overlap. */
export function runAt(rows: readonly ScheduleRow[], nowMs: number): ScheduleRun | undefined {
  for (const row of rows) {
    const day = daysAround(row, nowMs, -2, 1).find(({ startMs, endMs }) => startMs <= nowMs && nowMs < endMs)
    if (day !== undefined) return wholeRun(row, day)
  }
  return undefined
}

/** The first run of this row that starts after `nowMs`: within a week. */
export function nextRun(row: ScheduleRow, nowMs: number): ScheduleRun | undefined {
  const day = daysAround(row, nowMs, -1, ENDLESS_DAYS).find(({ startMs }) => startMs > nowMs)
  return day && wholeRun(row, day)
}

/** Two rows that run at the same time within a year from `fromMs`, or undefined. */
export function overlappingRows<Row extends ScheduleRow>(
  rows: readonly Row[],
  fromMs: number,
): readonly [Row, Row] | undefined {
  if (rows.length < 2) return undefined
  for (const weekMs of differentWeeks(rows, fromMs)) {
    const days = rows
      .flatMap((row) => daysAround(row, weekMs, -2, WEEK_DAYS + 1).map((day) => ({ ...day, row })))
      .sort((a, b) => a.startMs - b.startMs)
    for (const [index, day] of days.entries()) {
      const before = days[index - 1]
      if (before !== undefined && before.row !== day.row && day.startMs < before.endMs) {
        return [before.row, day.row]
      }
    }
  }
  return undefined
}

/** Starts of weeks, at least one for each combination of clock offsets of the rows' zones in this year. */
function differentWeeks(rows: readonly ScheduleRow[], fromMs: number): number[] {
  const zones = [...new Set(rows.map(({ zone }) => zone))]
  const weeks = Array.from({ length: COMPARED_WEEKS }, (_, week) => fromMs + week * WEEK_DAYS * DAY_MS)
  const clocks = weeks.map((ms) => zones.map((zone) => timeOfDayText(ms, zone)).join())
  // The week before a clock change contains it, and the week after it is the first of the new kind.
  return weeks.filter((_, week) => clocks[week] !== clocks[week - 1] || clocks[week] !== clocks[week + 1])
}

function timeOfDayText(ms: number, zone: string): string {
  const { hour, minute, second } = localTimeAt(ms, zone)
  return `${hour}:${minute}:${second}`
}

/** The first instant after `afterMs` with this time of day ("HH:MM:SS") in `zone`. */
export function nextTimeOfDay(time: string, zone: string, afterMs: number): number {
  const today = dateAt(afterMs, zone)
  const instants = [-1, 0, 1, 2].map((days) => instantOf(addDays(today, days), time, zone))
  return instants.find((ms) => ms > afterMs) ?? Number.POSITIVE_INFINITY
}

/** The part of a row that begins on one day. */
interface Day {
  readonly startMs: number
  readonly endMs: number
}

/** Ascending; those that a clock change swallows are left out. */
function daysAround(row: ScheduleRow, nowMs: number, from: number, to: number): Day[] {
  const today = dateAt(nowMs, row.zone)
  const days: Day[] = []
  for (let offset = from; offset <= to; offset++) {
    const date = addDays(today, offset)
    if (!row.days.includes(weekdayOf(date))) continue
    const isNextDay = row.stop <= row.start
    const day = {
      startMs: instantOf(date, row.start, row.zone),
      endMs: instantOf(isNextDay ? addDays(date, 1) : date, row.stop, row.zone),
    }
    if (day.startMs < day.endMs) days.push(day)
  }
  return days
}

function wholeRun(row: ScheduleRow, { startMs, endMs }: Day): ScheduleRun {
  let lastMs = endMs
  for (const day of daysAround(row, endMs, -1, ENDLESS_DAYS)) if (day.startMs === lastMs) lastMs = day.endMs
  const isEndless = lastMs - startMs > (ENDLESS_DAYS - 1) * DAY_MS
  return { row, startMs, endMs: isEndless ? Number.POSITIVE_INFINITY : lastMs }
}

/** A calendar date: its midnight, as if in UTC. */
type DateMs = number

function dateAt(ms: number, zone: string): DateMs {
  const { year, month, day } = localTimeAt(ms, zone)
  return Date.UTC(year, month - 1, day)
}

function addDays(date: DateMs, days: number): DateMs {
  return date + days * DAY_MS
}

function weekdayOf(date: DateMs): (typeof CAPTURE_DAYS)[number] {
  return CAPTURE_DAYS[new Date(date).getUTCDay()] ?? 'sun'
}

function instantOf(date: DateMs, time: string, zone: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = time.split(':').map(Number)
  const readingMs = date + ((hours * 60 + minutes) * 60 + seconds) * 1_000
  const [first] = instantsOf(readingOf(readingMs), zone)
  if (first !== undefined) return first
  // Clocks are set forward at whole minutes, by a day at most.
  let laterMs = Math.ceil(readingMs / MINUTE_MS) * MINUTE_MS
  for (; laterMs <= readingMs + DAY_MS; laterMs += MINUTE_MS) {
    const [instantMs] = instantsOf(readingOf(laterMs), zone)
    if (instantMs !== undefined) return instantMs
  }
  throw new Error(`the clock of ${zone} skips more than a day`)
}

function readingOf(ms: number): LocalTime {
  return localTimeAt(ms, 'UTC')
}
