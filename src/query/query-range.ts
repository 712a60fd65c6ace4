/** Which time a download covers: TSBegin and TSEnd, from and to, or Start and Stop. */
import type { DownloadKind, DownloadQuery } from './download-query.ts'
import { badParameter, type QueryParameters, quote } from './query-parameters.ts'
import {
  isLocalTime,
  parseQueryTime,
  type QueryTime,
  TIME_LIMIT_NS,
  TIME_UNIT_NAMES,
  TIME_UNIT_WORDS,
  type TimeUnit,
} from './query-time.ts'
import { resolveTimeZone } from './time-zone.ts'

export interface RangeContext {
  /**
   * IANA zone for local times without TSZone; undefined: that of the device, which is to read them itself, and
   * words of TSMode that are not known here.
   */
  readonly zone: string | undefined
  /** "now" of relative times, epoch nanoseconds. */
  readonly nowNs: bigint
}

export type QueryRange = Pick<DownloadQuery, 'beginNs' | 'endNs' | 'timeUnit' | 'timeZone' | 'localTimes'>

/** Takes the parameters of the range. Fails with bad-parameter, bad-timezone, ambiguous-timezone. */
export function takeQueryRange(
  kind: DownloadKind,
  parameters: QueryParameters,
  context: RangeContext,
): QueryRange {
  if (kind === 'single') return { beginNs: 0n, endNs: TIME_LIMIT_NS, timeUnit: undefined }
  // Start and Stop are nanoseconds whatever their size (API section 4.4.3).
  const unit = kind === 'timerange' ? takeUnit(parameters) : 'nanos'
  const givenZone = kind === 'timerange' ? takeZone(parameters) : undefined
  const zone = givenZone ?? context.zone
  const [beginEnd, endEnd] =
    kind === 'timerange' ? takeRangeEnds(parameters, unit) : takeSplitEnds(parameters)
  const shared = { zone, nowNs: context.nowNs }
  const begin = readEnd({ ...shared, ...beginEnd, isEnd: false })
  const end = readEnd({ ...shared, ...endEnd, isEnd: true })
  if (begin.ns > end.ns) {
    throw badParameter(
      beginEnd.parameter,
      `(${begin.ns} ns) is later than ${endEnd.parameter} (${end.ns} ns); swap them`,
    )
  }
  const units = [...new Set([begin.unit, end.unit])].filter((used) => used !== undefined)
  const isZoneAssumed = givenZone === undefined && zone !== undefined && units.includes('YYYYMMDD_HHMMSS')
  return {
    beginNs: begin.ns,
    endNs: end.ns,
    timeUnit: kind === 'timerange' && units.length > 0 ? units.join(', ') : undefined,
    ...(isZoneAssumed ? { timeZone: zone } : {}),
    ...(begin.local === undefined && end.local === undefined
      ? {}
      : { localTimes: { begin: begin.local, end: end.local } }),
  }
}

function readEnd(
  end: RangeEnd & Pick<RangeContext, 'zone' | 'nowNs'> & { readonly isEnd: boolean },
): QueryTime & { readonly local?: string } {
  const { text, zone, isEnd } = end
  if (zone !== undefined || !isLocalTime(text, end))
    return parseQueryTime(text, { ...end, zone: zone ?? 'UTC' })
  return { ns: isEnd ? TIME_LIMIT_NS : 0n, unit: 'YYYYMMDD_HHMMSS', local: text }
}

/** Whether TSMode is the unit of TSBegin and TSEnd here, as scripts for the legacy API have it. */
export function isUnitMode(kind: DownloadKind, word: string): boolean {
  return kind === 'timerange' && timeUnitOf(word) !== undefined
}

interface RangeEnd {
  readonly parameter: string
  readonly text: string
  readonly unit: TimeUnit | undefined
}

function takeSplitEnds(parameters: QueryParameters): readonly [RangeEnd, RangeEnd] {
  const end = (parameter: string): RangeEnd => ({
    parameter,
    text: parameters.require(parameter),
    unit: 'nanos',
  })
  return [end('Start'), end('Stop')]
}

function takeRangeEnds(
  parameters: QueryParameters,
  unit: TimeUnit | undefined,
): readonly [RangeEnd, RangeEnd] {
  return [takeEnd(parameters, 'TSBegin', 'from', unit), takeEnd(parameters, 'TSEnd', 'to', unit)]
}

/** `shortName` is the parameter that dashboards write: epoch milliseconds. */
function takeEnd(
  parameters: QueryParameters,
  name: string,
  shortName: string,
  unit: TimeUnit | undefined,
): RangeEnd {
  const text = parameters.take(shortName) ?? ''
  if (text === '') return { parameter: name, text: parameters.require(name), unit }
  if (parameters.take(name) !== undefined) {
    throw badParameter(shortName, `is ${name} in epoch milliseconds; give one of them`)
  }
  return { parameter: shortName, text, unit: 'msecs' }
}

/** TSUnit, or its listed misspelling TSUint, or a TSMode that is a unit (api-decisions section 4). */
function takeUnit(parameters: QueryParameters): TimeUnit | undefined {
  const text = parameters.take('TSUnit') || undefined
  const alias = parameters.take('TSUint') || undefined
  if (text !== undefined && alias !== undefined) {
    throw badParameter('TSUint', 'is another spelling of TSUnit; give one of them')
  }
  const mode = parameters.take('TSMode')
  const unitOfMode = mode === undefined ? undefined : timeUnitOf(mode)
  const given = text ?? alias
  if (given === undefined) return unitOfMode
  const unit = timeUnitOf(given)
  if (unit === undefined) {
    throw badParameter(
      text === undefined ? 'TSUint' : 'TSUnit',
      `must be one of ${TIME_UNIT_WORDS.join(', ')}, got ${quote(given)}`,
    )
  }
  return unit
}

/** In upper or lower case. */
function timeUnitOf(word: string): TimeUnit | undefined {
  const name = TIME_UNIT_WORDS.find((known) => known.toLowerCase() === word.toLowerCase())
  return name === undefined ? undefined : TIME_UNIT_NAMES[name]
}

function takeZone(parameters: QueryParameters): string | undefined {
  const text = parameters.take('TSZone')?.trim() ?? ''
  return text === '' ? undefined : resolveTimeZone(text, 'TSZone')
}
