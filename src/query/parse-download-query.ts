/**
 * The query string of a download (API section 4.4) becomes a DownloadQuery, or a CapfleetError that
 * names the parameter and the allowed form. Nothing of it is looked up: this is text alone.
 */
import { CAPTURE_NAME, CAPTURE_NAME_RULE } from './capture-name-rule.ts'
import type { DownloadKind, DownloadQuery } from './download-query.ts'
import { badParameter, QueryParameters, quote } from './query-parameters.ts'
import { parseQueryTime, TIME_LIMIT_NS, TIME_UNIT_NAMES, type TimeUnit } from './query-time.ts'
import { COMPRESSIONS } from './query-values.ts'
import { resolveTimeZone } from './time-zone.ts'

export interface ParseContext {
  /** IANA zone for local times without TSZone. */
  readonly zone: string
  /** "now" of relative times, epoch nanoseconds. */
  readonly nowNs: bigint
  /** Parameters that the caller reads itself, such as the gateway's `Device`. */
  readonly callerParameters?: readonly string[]
}

/** `raw` is the query string without "?". Fails with bad-parameter, bad-timezone, ambiguous-timezone. */
export function parseDownloadQuery(kind: DownloadKind, raw: string, context: ParseContext): DownloadQuery {
  const parameters = new QueryParameters(raw)
  for (const name of context.callerParameters ?? []) parameters.take(name)
  const range = takeRange(kind, parameters, context)
  refuseUnsupported(kind, parameters)
  const shared = {
    kind,
    captureName: kind === 'timerange' ? undefined : takeCaptureName(parameters),
    ...range,
    filterBpf: takeFilter(parameters),
    tsMaxNs: parameters.takeInteger('TSMax', 1n, 2n ** 63n - 1n),
    sliceBytes: toNumber(parameters.takeInteger('Slice', 1n, SLICE_MAX_BYTES)),
    timeResolution: parameters.takeChoice('TSResolution', ['nsec', 'usec']) ?? 'nsec',
    compression: parameters.takeChoice('Compression', COMPRESSIONS) ?? 'none',
    waitS: toNumber(parameters.takeInteger('Wait', 0n, WAIT_MAX_S)),
  }
  return { ...shared, ignored: parameters.finish() }
}

/** API section 8. */
const SLICE_MAX_BYTES = 12_288n
/** api-decisions section 4. */
const WAIT_MAX_S = 600n
/** The limit of the program that compiles it. */
const FILTER_MAX_BYTES = 16_384

type Range = Pick<DownloadQuery, 'beginNs' | 'endNs' | 'timeUnit'>

function takeRange(kind: DownloadKind, parameters: QueryParameters, context: ParseContext): Range {
  if (kind === 'single') return { beginNs: 0n, endNs: TIME_LIMIT_NS, timeUnit: undefined }
  const names = kind === 'timerange' ? (['TSBegin', 'TSEnd'] as const) : (['Start', 'Stop'] as const)
  const shared = {
    // Start and Stop are nanoseconds whatever their size (API section 4.4.3).
    unit: kind === 'timerange' ? takeUnit(parameters) : 'nanos',
    zone: kind === 'timerange' ? takeZone(parameters, context.zone) : context.zone,
    nowNs: context.nowNs,
  } as const
  const [beginName, endName] = names
  const beginText = parameters.require(beginName)
  const endText = parameters.require(endName)
  const begin = parseQueryTime(beginText, { ...shared, parameter: beginName, inOverlap: 'first' })
  const end = parseQueryTime(endText, { ...shared, parameter: endName, inOverlap: 'last' })
  if (begin.ns > end.ns) {
    throw badParameter(beginName, `(${begin.ns} ns) is later than ${endName} (${end.ns} ns); swap them`)
  }
  const units = [...new Set([begin.unit, end.unit])].filter((unit) => unit !== undefined)
  return {
    beginNs: begin.ns,
    endNs: end.ns,
    timeUnit: kind === 'timerange' && units.length > 0 ? units.join(', ') : undefined,
  }
}

/** TSUnit, or its listed misspelling TSUint, or a TSMode that is a unit (api-decisions section 4). */
function takeUnit(parameters: QueryParameters): TimeUnit | undefined {
  const text = parameters.take('TSUnit')
  const alias = parameters.take('TSUint')
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
      `must be one of ${Object.keys(TIME_UNIT_NAMES).join(', ')}, got ${quote(given)}`,
    )
  }
  return unit
}

function timeUnitOf(word: string): TimeUnit | undefined {
  return Object.hasOwn(TIME_UNIT_NAMES, word) ? TIME_UNIT_NAMES[word] : undefined
}

function takeZone(parameters: QueryParameters, defaultZone: string): string {
  const text = parameters.take('TSZone')
  return text === undefined ? defaultZone : resolveTimeZone(text, 'TSZone')
}

function takeCaptureName(parameters: QueryParameters): string {
  const name = parameters.require('StreamName')
  if (!CAPTURE_NAME.test(name)) throw badParameter('StreamName', `${CAPTURE_NAME_RULE}, got ${quote(name)}`)
  return name
}

/** An empty filter is none: scripts pass an unset variable. */
function takeFilter(parameters: QueryParameters): string | undefined {
  const text = parameters.take('FilterBPF')
  if (text === undefined || text.trim() === '') return undefined
  if (Buffer.byteLength(text) > FILTER_MAX_BYTES) {
    throw badParameter('FilterBPF', `is longer than ${FILTER_MAX_BYTES} bytes; shorten the expression`)
  }
  const position = text.search(CONTROL_CHARACTER)
  if (position >= 0) {
    throw badParameter('FilterBPF', `holds a control character at character ${position}; remove it`, position)
  }
  return text
}

/** A NUL would end the expression early inside the compiler; line ends and tabs are harmless. */
const CONTROL_CHARACTER = /[^\P{Cc}\t\r\n]/u

/** Parameters of the API that change which packets are returned and are not built yet. */
const UNSUPPORTED = [
  'FilterFrame',
  'FilterRE',
  'FilterPort',
  'MaxBytes',
  'MaxPackets',
  'Follow',
  'from',
  'to',
]

function refuseUnsupported(kind: DownloadKind, parameters: QueryParameters): void {
  for (const name of UNSUPPORTED) {
    if ((parameters.take(name) ?? '') !== '') throw badParameter(name, 'is not supported yet; leave it out')
  }
  if (parameters.takeChoice('FilterBPFDecap', ['true', 'false']) === 'true') {
    throw badParameter('FilterBPFDecap', '"true" is not supported yet; leave it out')
  }
  const mode = parameters.take('TSMode') ?? 'nic'
  if (mode === 'nic' || (kind === 'timerange' && timeUnitOf(mode) !== undefined)) return
  if (VENDOR_TIME_MODES.includes(mode))
    throw badParameter('TSMode', `"${mode}" is not supported yet; use nic`)
  throw badParameter('TSMode', `must be one of nic, ${VENDOR_TIME_MODES.join(', ')}, got ${quote(mode)}`)
}

/** API section 4.4.5. */
const VENDOR_TIME_MODES: readonly string[] = [
  'vendorA7130',
  'vendorA7150_overwrite',
  'vendorA7150_insert',
  'vendorA7280_eth64',
  'vendorA7280_mac48',
  'vendorB_erspan3',
  'vendorB3550',
]

function toNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value)
}
