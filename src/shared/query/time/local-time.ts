import { LRUCache } from 'lru-cache'

/** A calendar date and wall-clock time, to the second. */
export interface LocalTime {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
}

const DAY_MS = 86_400_000

/**
 * The instants (epoch milliseconds, ascending) at which a clock in `zone` shows `local`: usually one, none if the
 * clock is set forward past it, two if it is set back over it. REQUIRES: a real date, and a zone name that Intl knows.
 */
export function instantsOf(local: LocalTime, zone: string): number[] {
  const asUtcMs = Date.UTC(local.year, local.month - 1, local.day, local.hour, local.minute, local.second)
  // Changes of offset are more than a day apart, so these two offsets are all there are.
  const offsets = new Set([offsetMs(asUtcMs - DAY_MS, zone), offsetMs(asUtcMs + DAY_MS, zone)])
  return [...offsets]
    .map((offset) => asUtcMs - offset)
    .filter((instantMs) => instantMs + offsetMs(instantMs, zone) === asUtcMs)
    .sort((a, b) => a - b)
}

/**
 * The first instant (epoch milliseconds) of that day in `zone`, also where the clock is put forward over midnight. For
 * a day that the zone skipped, it is the start of the next one. REQUIRES: as for instantsOf.
 */
export function dayStartMs(
  { year, month, day }: Pick<LocalTime, 'year' | 'month' | 'day'>,
  zone: string,
): number {
  const midnight = { year, month, day, hour: 0, minute: 0, second: 0 }
  const asUtcMs = Date.UTC(year, month - 1, day)
  return instantsOf(midnight, zone).at(0) ?? asUtcMs - offsetMs(asUtcMs - DAY_MS, zone)
}

/** Whether the date and time exist (no 30 February, no 24:00, no :60). */
export function isRealTime(local: LocalTime): boolean {
  const date = new Date(
    Date.UTC(local.year, local.month - 1, local.day, local.hour, local.minute, local.second),
  )
  return (
    // Date.UTC maps the years 0 to 99 to 1900 to 1999.
    date.getUTCFullYear() === local.year &&
    date.getUTCMonth() === local.month - 1 &&
    date.getUTCDate() === local.day &&
    date.getUTCHours() === local.hour &&
    date.getUTCMinutes() === local.minute &&
    date.getUTCSeconds() === local.second
  )
}

/** What a clock in `zone` shows at that instant (epoch milliseconds). */
export function localTimeAt(instantMs: number, zone: string): LocalTime {
  const date = new Date(instantMs + offsetMs(instantMs, zone))
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
  }
}

/** How far a clock in `zone` is ahead of UTC at that instant. */
function offsetMs(instantMs: number, zone: string): number {
  const parts: Record<string, number> = {}
  for (const { type, value } of formatterFor(zone).formatToParts(instantMs)) parts[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(instantMs / 1000) * 1000
}

/** Creating a formatter costs more than using it. Names come from requests, so the cache is limited. */
const formatters = new LRUCache<string, Intl.DateTimeFormat>({ max: 64 })

function formatterFor(zone: string): Intl.DateTimeFormat {
  const cached = formatters.get(zone)
  if (cached) return cached
  const formatter = new Intl.DateTimeFormat('en-u-ca-gregory-nu-latn', {
    timeZone: zone,
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
    hourCycle: 'h23',
  })
  formatters.set(zone, formatter)
  return formatter
}
