/** Instants as epoch nanoseconds, and how they are written for people, in UTC or the browser's zone. */
import { isRelativeTime, parseQueryTime } from '../../shared/query/time/query-time.ts'

export const NS_PER_MS = 1_000_000n
export const NS_PER_S = 1_000_000_000n

/** "UTC", or an IANA name. */
export type Zone = string

export function browserZone(): Zone {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

export function nowNs(): bigint {
  return BigInt(Date.now()) * NS_PER_MS
}

/** "2026-11-02 09:01:00.123456789", with the requested number of digits. */
export function instantText(ns: bigint, zone: Zone, digits = 9): string {
  const seconds = floorDivide(ns, NS_PER_S)
  const fraction = String(ns - seconds * NS_PER_S)
    .padStart(9, '0')
    .slice(0, digits)
  return `${dateTimeText(Number(seconds) * 1_000, zone)}${digits === 0 ? '' : `.${fraction}`}`
}

/** Only the time of day. */
export function clockText(ns: bigint, zone: Zone, digits = 9): string {
  return instantText(ns, zone, digits).slice(11)
}

/** "2026-11-02T09:01:00.123456789Z": unambiguous, and accepted by the API. */
export function isoText(ns: bigint): string {
  return `${instantText(ns, 'UTC').replace(' ', 'T')}Z`
}

/** "UTC", or "Europe/Berlin (UTC+01:00)" as of the instant. */
export function zoneText(zone: Zone, ns: bigint): string {
  return zone === 'UTC' ? 'UTC' : `${zone} (${offsetText(zone, ns)})`
}

/** "UTC", or "UTC+01:00" as of the instant. */
export function offsetText(zone: Zone, ns: bigint): string {
  if (zone === 'UTC') return 'UTC'
  const parts = formatOf(zone, 'longOffset').formatToParts(Number(ns / NS_PER_MS))
  const offset = parts.find(({ type }) => type === 'timeZoneName')?.value.replace('GMT', 'UTC') ?? ''
  return offset === 'UTC' ? 'UTC+00:00' : offset
}

/** What clocks in the zone show at the instant, minus what they show in UTC. */
export function zoneOffsetNs(zone: Zone, ns: bigint): bigint {
  if (zone === 'UTC') return 0n
  const seconds = floorDivide(ns, NS_PER_S)
  return BigInt(offsetMsAt(Number(seconds) * 1_000, zone)) * NS_PER_MS
}

/**
 * Converts typed text to epoch nanoseconds: anything that the API accepts, where a time without zone is in the given
 * zone. A relative time is kept, because its meaning changes; so is an invalid one, which the gateway will reject. Of
 * "today" and "yesterday" the zone must be kept, too.
 */
export function typedInstant(text: string, zone: Zone, isEnd = false): string {
  const typed = text.trim()
  if (isRelativeTime(typed)) return typed
  try {
    return String(instantOfTyped('', typed, zone, isEnd))
  } catch {
    return typed
  }
}

/** Fails with bad-parameter naming the parameter. */
export function instantOfTyped(parameter: string, typed: string, zone: Zone, isEnd = false): bigint {
  return parseQueryTime(typed, { parameter, unit: undefined, zone, nowNs: nowNs(), isEnd }).ns
}

/** RFC 3339 to the millisecond, as the gateway writes it. */
export function instantOfIso(text: string): bigint {
  return BigInt(Date.parse(text)) * NS_PER_MS
}

/** "1 h 20 min", "12.5 ms", "1 ns": rounded for reading. */
export function durationText(ns: bigint): string {
  if (ns < 0n) return `-${durationText(-ns)}`
  if (ns < 1_000n) return `${ns} ns`
  if (ns < NS_PER_MS) return `${decimal(ns, 1_000n)} µs`
  if (ns < NS_PER_S) return `${decimal(ns, NS_PER_MS)} ms`
  if (ns < 60n * NS_PER_S) return `${decimal(ns, NS_PER_S)} s`
  const [large, small] =
    ns < 3_600n * NS_PER_S
      ? (['min', 's'] as const)
      : ns < 86_400n * NS_PER_S
        ? (['h', 'min'] as const)
        : (['d', 'h'] as const)
  const unitNs = SECONDS[large] * NS_PER_S
  const rest = (ns % unitNs) / (SECONDS[small] * NS_PER_S)
  return `${ns / unitNs} ${large}${rest === 0n ? '' : ` ${rest} ${small}`}`
}

const SECONDS = { s: 1n, min: 60n, h: 3_600n, d: 86_400n } as const

/** Four digits, without trailing zeros. */
function decimal(value: bigint, unit: bigint): string {
  return String(Number((Number(value) / Number(unit)).toPrecision(4)))
}

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by
  return value % by < 0n ? quotient - 1n : quotient
}

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(zone: Zone, timeZoneName: 'longOffset' | 'none'): Intl.DateTimeFormat {
  const key = `${zone} ${timeZoneName}`
  const known = formats.get(key)
  if (known !== undefined) return known
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    ...(timeZoneName === 'none' ? {} : { timeZoneName }),
  })
  formats.set(key, format)
  return format
}

function dateTimeText(ms: number, zone: Zone): string {
  if (zone === 'UTC') return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
  return formatOf(zone, 'none').format(ms)
}

/** REQUIRES: whole seconds. */
function offsetMsAt(ms: number, zone: Zone): number {
  return Date.parse(`${dateTimeText(ms, zone).replace(' ', 'T')}Z`) - ms
}
