import { CapfleetError } from '../../base/error.ts'
import { nearestNames } from '../nearest-names.ts'
import { quote } from '../query-parameters.ts'
import { ZONE_ALIASES } from './zone-aliases.ts'

/**
 * The IANA zone that `text` names, in a spelling that Intl accepts: a full name ("Asia/Singapore"), or its last part
 * alone ("singapore", "New_York"), in any case, old or new spelling. Fails with bad-timezone (with similar names) or
 * ambiguous-timezone (with the candidates), naming `parameter`.
 */
export function resolveTimeZone(text: string, parameter: string): string {
  const name = text.trim().replaceAll(' ', '_')
  if (ZONE_NAME.test(name)) {
    const { byName, byCity } = zoneNames()
    const full = byName.get(name.toLowerCase())
    if (full !== undefined) return full
    const candidates = byCity.get(name.toLowerCase()) ?? []
    const [only, ...others] = distinctZones(candidates)
    if (only !== undefined && others.length === 0) return only
    if (only !== undefined) throw ambiguous(text, candidates, parameter)
  }
  throw unknown(text, name, parameter)
}

/** Must begin with a letter, which excludes offsets such as "+05:00", which are not zone names. */
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+){0,2}$/

/** Intl's own name of the zone, equal for all spellings of it; undefined if it knows none. */
function canonicalName(name: string): string | undefined {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

/** One spelling per distinct zone. */
function distinctZones(names: readonly string[]): string[] {
  const bySpelling = new Map<string, string>()
  for (const name of names) {
    const canonical = canonicalName(name)
    if (canonical !== undefined && !bySpelling.has(canonical)) bySpelling.set(canonical, name)
  }
  return [...bySpelling.values()]
}

interface ZoneNames {
  /** Zones by their full names in lower case. */
  readonly byName: ReadonlyMap<string, string>
  /** Full names by their last part in lower case. */
  readonly byCity: ReadonlyMap<string, readonly string[]>
}

let cachedNames: ZoneNames | undefined

/** Stricter than Intl, which also accepts abbreviations with a surprising meaning (ACT, IST). */
function zoneNames(): ZoneNames {
  if (cachedNames) return cachedNames
  const byName = new Map<string, string>()
  const byCity = new Map<string, string[]>()
  for (const name of [...Intl.supportedValuesOf('timeZone'), ...ZONE_ALIASES]) {
    byName.set(name.toLowerCase(), name)
    const city = cityOf(name).toLowerCase()
    byCity.set(city, [...(byCity.get(city) ?? []), name])
  }
  cachedNames = { byName, byCity }
  return cachedNames
}

function cityOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1)
}

function ambiguous(text: string, candidates: readonly string[], parameter: string): CapfleetError {
  return new CapfleetError(
    'ambiguous-timezone',
    `${parameter} "${text}" names several time zones: ${candidates.join(', ')}; use one of them`,
    { param: parameter, members: { candidates } },
  )
}

function unknown(text: string, name: string, parameter: string): CapfleetError {
  const { byCity } = zoneNames()
  const near = nearestNames(cityOf(name), byCity.keys()).flatMap((city) => byCity.get(city) ?? [])
  const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`
  return new CapfleetError(
    'bad-timezone',
    `${parameter} ${quote(text)} is not an IANA time zone, such as Asia/Singapore or Singapore${hint}`,
    { param: parameter, members: { candidates: near } },
  )
}
