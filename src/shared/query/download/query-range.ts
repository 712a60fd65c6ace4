/** The time range of a download: TSBegin and TSEnd, from and to, or Start and Stop. */

import { TEXT } from '../parameter-types.ts'
import {
  badParameter,
  type Parameter,
  type ParameterRows,
  type ParameterType,
  type ParameterValues,
  quote,
} from '../query-parameters.ts'
import { type GivenParameters, readParameters, requireParameter } from '../read-parameters.ts'
import {
  parseQueryTime,
  rfc3339Of,
  TIME_LIMIT_NS,
  TIME_UNIT_WORDS,
  type TimeUnit,
  timeUnitOf,
} from '../time/query-time.ts'
import { TIME_FORM_EXAMPLES } from '../time/time-forms.ts'
import { resolveTimeZone } from '../time/time-zone.ts'
import type { DownloadKind, DownloadQuery } from './download-query.ts'

const TIME_TEXTS = `A number in TSUnit, or a time as other programs write it: ${TIME_FORM_EXAMPLES}.`

/** The rows of the range. The ends are texts, whose meaning depends on the unit and the zone. */
export const RANGE_PARAMETERS = {
  begin: {
    name: 'TSBegin',
    says: `The start of the range, inclusive. ${TIME_TEXTS}`,
    type: TEXT,
    kinds: ['timerange'],
    example: '-15m',
  },
  end: {
    name: 'TSEnd',
    says: `The end of the range, exclusive. ${TIME_TEXTS}`,
    type: TEXT,
    kinds: ['timerange'],
    example: 'now',
  },
  unit: {
    name: 'TSUnit',
    says: 'The unit of TSBegin and TSEnd.',
    type: unitType(),
    defaultSays:
      'nanoseconds, but 9 to 11 digits are seconds, 12 to 14 milliseconds, 15 to 17 microseconds, and then only from 1990 to 2106',
    kinds: ['timerange'],
  },
  misspeltUnit: {
    name: 'TSUint',
    says: 'Another spelling of TSUnit.',
    isOtherSpelling: true,
    type: unitType(),
    kinds: ['timerange'],
  },
  zone: {
    name: 'TSZone',
    says: 'The time zone of times without one, of dates, and of today and yesterday: an IANA name, or only its city, in upper or lower case.',
    type: zoneType(),
    defaultSays:
      "the device's zone below /devices/{device} and on the device itself, otherwise the gateway's",
    kinds: ['timerange'],
    example: 'Singapore',
  },
  beginMs: {
    name: 'from',
    says: 'TSBegin in epoch milliseconds, as dashboards send it.',
    type: TEXT,
    kinds: ['timerange'],
  },
  endMs: {
    name: 'to',
    says: 'TSEnd in epoch milliseconds.',
    type: TEXT,
    kinds: ['timerange'],
  },
  start: {
    name: 'Start',
    says: 'The start of the part, inclusive, in epoch nanoseconds. A number that looks like another unit is rejected unless ULL follows it.',
    type: TEXT,
    kinds: ['splittime'],
    required: true,
  },
  stop: {
    name: 'Stop',
    says: 'The end of the part, exclusive, in epoch nanoseconds, like Start.',
    type: TEXT,
    kinds: ['splittime'],
    required: true,
  },
} as const satisfies ParameterRows

/** TSMode of a time range below /pcap/. */
export const UNIT_MODE_PARAMETER = {
  name: 'TSMode',
  says: 'The unit of TSBegin and TSEnd.',
  type: unitType(),
  defaultSays: 'as TSUnit',
} as const satisfies Parameter<TimeUnit>

export interface RangeContext {
  /**
   * IANA zone for local times without TSZone; undefined: the device parses them itself in its own zone, as well as
   * words of TSMode that are unknown here.
   */
  readonly zone: string | undefined
  /** "now" of relative times, epoch nanoseconds. */
  readonly nowNs: bigint
}

export type QueryRange = Pick<DownloadQuery, 'beginNs' | 'endNs' | 'timeUnit' | 'timeZone' | 'localTimes'>

/** A time range for activity, from the parameters of a time range. Fails like readQueryRange, and if it is empty. */
export function readActivityRange(
  given: GivenParameters,
  context: RangeContext & { readonly zone: string },
): Pick<QueryRange, 'beginNs' | 'endNs' | 'timeZone'> {
  const { beginNs, endNs, timeZone } = readQueryRange('timerange', given, context)
  if (beginNs < endNs) return { beginNs, endNs, ...(timeZone === undefined ? {} : { timeZone }) }
  throw badParameter('TSEnd', `(${rfc3339Of(endNs)}) must be later than TSBegin`)
}

/** The range that the parameters specify. Fails with bad-parameter, bad-timezone, ambiguous-timezone. */
export function readQueryRange(
  kind: DownloadKind,
  given: GivenParameters,
  context: RangeContext,
): QueryRange {
  if (kind === 'single') return { beginNs: 0n, endNs: TIME_LIMIT_NS, timeUnit: undefined }
  const values = readParameters(RANGE_PARAMETERS, given, { kind })
  const [beginEnd, endEnd] = kind === 'timerange' ? rangeEnds(values, given) : splitEnds(values)
  const zone = values.zone ?? context.zone
  const shared = { zone, nowNs: context.nowNs }
  const begin = parseQueryTime(beginEnd.text, { ...shared, ...beginEnd, isEnd: false })
  const end = parseQueryTime(endEnd.text, {
    ...shared,
    ...endEnd,
    beginNs: begin.localText === undefined ? begin.ns : undefined,
    isEnd: true,
  })
  if (begin.ns > end.ns) {
    throw badParameter(
      beginEnd.parameter,
      `(${rfc3339Of(begin.ns)}) is later than ${endEnd.parameter} (${rfc3339Of(end.ns)}); swap them`,
    )
  }
  const units = [...new Set([begin.unit, end.unit])].filter((used) => used !== undefined)
  const isZoneAssumed = values.zone === undefined && zone !== undefined && (begin.isLocal || end.isLocal)
  return {
    beginNs: begin.ns,
    endNs: end.ns,
    timeUnit: kind === 'timerange' && units.length > 0 ? units.join(', ') : undefined,
    ...(isZoneAssumed ? { timeZone: zone } : {}),
    ...(begin.localText === undefined && end.localText === undefined
      ? {}
      : { localTimes: { begin: begin.localText, end: end.localText } }),
  }
}

interface RangeEnd {
  readonly parameter: string
  readonly text: string
  readonly unit: TimeUnit | undefined
  readonly unitIsMeant?: string
}

type RangeValues = ParameterValues<typeof RANGE_PARAMETERS>

function splitEnds({ start = '', stop = '' }: RangeValues): readonly [RangeEnd, RangeEnd] {
  return [splitEnd('Start', start), splitEnd('Stop', stop)]
}

function splitEnd(parameter: string, text: string): RangeEnd {
  return {
    parameter,
    text,
    unit: 'nanos',
    unitIsMeant: `append ULL if nanoseconds are meant, or write the time as 2026-11-02T09:01:00Z`,
  }
}

function rangeEnds(values: RangeValues, given: GivenParameters): readonly [RangeEnd, RangeEnd] {
  const unit = unitOf(values, given)
  return [
    rangeEnd({ row: RANGE_PARAMETERS.begin, shortName: 'from', shortText: values.beginMs }, unit, given),
    rangeEnd({ row: RANGE_PARAMETERS.end, shortName: 'to', shortText: values.endMs }, unit, given),
  ]
}

interface EndNames {
  readonly row: { readonly name: string; readonly example: string }
  readonly shortName: string
  readonly shortText: string | undefined
}

function rangeEnd(
  { row: { name, example }, shortName, shortText }: EndNames,
  unit: TimeUnit | undefined,
  given: GivenParameters,
): RangeEnd {
  if (shortText === undefined) return { parameter: name, text: requireParameter(given, name, example), unit }
  if (given.has(name)) throw badParameter(shortName, `is ${name} in epoch milliseconds; use only one of them`)
  return {
    parameter: shortName,
    text: shortText,
    unit: 'msecs',
    unitIsMeant: `use ${name}, which has a unit (TSUnit), or write the time as 2026-11-02T09:01:00Z`,
  }
}

/** TSUnit, or its listed misspelling TSUint, or a TSMode that is a unit. */
function unitOf({ unit, misspeltUnit }: RangeValues, given: GivenParameters): TimeUnit | undefined {
  if (unit !== undefined && misspeltUnit !== undefined) {
    throw badParameter('TSUint', 'is another spelling of TSUnit; use only one of them')
  }
  return unit ?? misspeltUnit ?? timeUnitOf(given.get('TSMode') ?? '')
}

function unitType(): ParameterType<TimeUnit> {
  return {
    schema: { type: 'string', enum: TIME_UNIT_WORDS },
    read: (text, name) => {
      const unit = timeUnitOf(text)
      if (unit !== undefined) return unit
      throw badParameter(name, `must be one of ${TIME_UNIT_WORDS.join(', ')}, got ${quote(text)}`)
    },
    write: (unit) => unit,
  }
}

export function zoneType(): ParameterType<string> {
  return {
    schema: { type: 'string' },
    read: (text, name) => (text.trim() === '' ? undefined : resolveTimeZone(text.trim(), name)),
    write: (zone) => zone,
  }
}
