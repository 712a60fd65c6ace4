/**
 * The parameters that the builder shows, and their headings: taken from the API's own rows, so that none can be
 * missing.
 */
import { EXPORT_PARAMETERS, SCHEDULE_PARAMETERS } from '../../shared/query/download/export-options.ts'
import { DOWNLOAD_TABLES } from '../../shared/query/download/parse-download-query.ts'
import type { Parameter, ParameterRows } from '../../shared/query/query-parameters.ts'
import { isRelativeTime } from '../../shared/query/time/query-time.ts'
import type { operations } from '../api-types.ts'
import { hasZone, isNanoseconds } from '../base/page-url.ts'

export type GroupName = 'filters' | 'limits' | 'times' | 'merge' | 'file' | 'export' | 'schedule' | 'more'

const PLACES: Readonly<Record<string, GroupName>> = {
  FilterBPF: 'filters',
  FilterBPFDecap: 'filters',
  FilterAddresses: 'filters',
  FilterFrame: 'filters',
  FilterPort: 'filters',
  FilterRE: 'filters',
  MaxPackets: 'limits',
  MaxBytes: 'limits',
  TSMax: 'limits',
  Slice: 'limits',
  Strip: 'limits',
  TSMode: 'times',
  TSResolution: 'times',
  OnError: 'merge',
  Dedup: 'limits',
  DedupBy: 'limits',
  Align: 'merge',
  Format: 'file',
  Compression: 'file',
  Wait: 'file',
  Digest: 'file',
  Follow: 'file',
}

/**
 * Parameters that the page expresses in another way: the range in nanoseconds, devices by the lanes, a job by its
 * button, and resuming a download by its receipt.
 */
const SAID_ELSEWHERE: ReadonlySet<string> = new Set([
  'Device',
  'TSBegin',
  'TSEnd',
  'TSUnit',
  'TSUint',
  'TSZone',
  'from',
  'to',
  'StreamName',
  'Start',
  'Stop',
  'Queue',
  'Resume',
  'Offset',
])

const DOWNLOAD_ROWS = rowsOf(DOWNLOAD_TABLES.fleet)
const EXPORT_ROWS = rowsOf([EXPORT_PARAMETERS])
const SCHEDULE_ROWS = rowsOf([SCHEDULE_PARAMETERS])

export const GROUPS: ReadonlyMap<GroupName, readonly Parameter[]> = new Map([
  ...Map.groupBy(DOWNLOAD_ROWS, ({ name }) => PLACES[name] ?? 'more'),
  ['export' as const, EXPORT_ROWS],
  ['schedule' as const, SCHEDULE_ROWS],
])

type Values = Readonly<Record<string, string>>

export type Pairs = readonly (readonly [name: string, value: string])[]

/** The range and the devices come first, as people write them. */
const RANGE_NAMES = ['Device', 'TSBegin', 'TSEnd']

/** The parameters of the download request. */
export function downloadPairs(values: Values): Pairs {
  return pairsOf(values, [...RANGE_NAMES, ...DOWNLOAD_ROWS.map(({ name }) => name)])
}

/** The page state for a download with these parameters; undefined for absent ones. */
export function downloadValues(query: URLSearchParams): Readonly<Record<string, string | undefined>> {
  const names = [...RANGE_NAMES, ...DOWNLOAD_ROWS.map(({ name }) => name)]
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]))
}

/** An export ignores parameters about waiting; it accepts additional ones. */
export function exportPairs(values: Values, isScheduled: boolean): Pairs {
  const table = DOWNLOAD_TABLES[isScheduled ? 'schedule' : 'export']
  return pairsOf(values, [...RANGE_NAMES, ...rowsOf(table).map(({ name }) => name)])
}

function pairsOf(values: Values, names: readonly string[]): Pairs {
  const pairs = [...new Set(names)].flatMap((name) => {
    const value = values[name]
    return value === undefined || value === '' ? [] : [[name, value] as const]
  })
  return [
    ...pairs,
    ...(isInNanoseconds(values) ? [['TSUnit', 'nanos'] as const] : []),
    ...(values.TSZone !== undefined && hasZone(values) ? [['TSZone', values.TSZone] as const] : []),
  ]
}

/** Whether a unit must be given, and would not distort the error message for an invalid time. */
function isInNanoseconds({ TSBegin = '', TSEnd = '' }: Values): boolean {
  const ends = [TSBegin, TSEnd]
  return ends.some(isNanoseconds) && ends.every((end) => isNanoseconds(end) || isRelativeTime(end))
}

function rowsOf(tables: readonly ParameterRows[]): readonly Parameter[] {
  return tables
    .flatMap((rows): Parameter[] => Object.values(rows))
    .filter(({ name, deviceOnly }) => deviceOnly !== true && !SAID_ELSEWHERE.has(name))
}

type QueryOf<Name extends keyof operations> = NonNullable<operations[Name]['parameters']['query']>

/** Typed for the API client: the pairs come from the same rows as its types. */
export function queryOf<Name extends keyof operations>(pairs: Pairs): QueryOf<Name> {
  return Object.fromEntries(pairs) as QueryOf<Name>
}

export function queryText(pairs: Pairs): string {
  return pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')
}
