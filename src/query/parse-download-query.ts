/**
 * The query string of a download (API section 4.4) becomes a DownloadQuery, or a CapfleetError that
 * names the parameter and the allowed form. Nothing of it is looked up: this is text alone.
 */
import { CAPTURE_NAME, CAPTURE_NAME_RULE } from './capture-name-rule.ts'
import type { DownloadKind, DownloadQuery } from './download-query.ts'
import { type FrameCondition, parseFrameFilter } from './frame-filter.ts'
import { badParameter, QueryParameters, quote } from './query-parameters.ts'
import { isUnitMode, type RangeContext, takeQueryRange } from './query-range.ts'
import { TIME_UNIT_WORDS } from './query-time.ts'
import { COMPRESSIONS } from './query-values.ts'
import { TIME_SOURCES, type TimeSource, type TimeSourceAliases, timeSourceOf } from './time-source.ts'

export interface ParseContext extends RangeContext {
  /** Parameters that the caller reads itself, such as the gateway's `Device`. */
  readonly callerParameters?: readonly string[]
  readonly timeSourceAliases?: TimeSourceAliases
  /** `After` is a parameter here: it is the gateway's of its devices, never a caller's of the gateway. */
  readonly knowsAfter?: boolean
}

/**
 * `raw` is the query string without "?". Fails with bad-parameter, bad-frame-filter, bad-timezone,
 * ambiguous-timezone.
 */
export function parseDownloadQuery(kind: DownloadKind, raw: string, context: ParseContext): DownloadQuery {
  const parameters = new QueryParameters(raw)
  for (const name of context.callerParameters ?? []) parameters.take(name)
  const range = takeQueryRange(kind, parameters, context)
  const source = takeTimeSource(kind, parameters, context)
  const follow = takeFollow(parameters, source.timeSource)
  const shared = {
    kind,
    captureName: kind === 'timerange' ? undefined : takeCaptureName(parameters),
    ...range,
    capturesMax: undefined,
    filterBpf: takeBpf(parameters),
    filterDecap: parameters.takeChoice('FilterBPFDecap', ['true', 'false']) === 'true',
    frameFilter: takeFrameFilter(parameters),
    filterRegex: takeRegex(parameters),
    follow,
    ...source,
    tsMaxNs: parameters.takeInteger('TSMax', 1n, INTEGER_MAX),
    maxBytes: parameters.takeInteger('MaxBytes', FILE_HEADER_BYTES, INTEGER_MAX),
    maxPackets: parameters.takeInteger('MaxPackets', 1n, INTEGER_MAX),
    afterBytes: context.knowsAfter ? takeAfter(parameters, follow) : undefined,
    sliceBytes: toNumber(parameters.takeInteger('Slice', 1n, SLICE_MAX_BYTES)),
    timeResolution: parameters.takeChoice('TSResolution', ['nsec', 'usec']) ?? 'nsec',
    compression: parameters.takeChoice('Compression', COMPRESSIONS) ?? 'none',
    waitS: toNumber(parameters.takeInteger('Wait', 0n, WAIT_MAX_S)),
  }
  return { ...shared, ignored: parameters.finish() }
}

const INTEGER_MAX = 2n ** 63n - 1n
/** An empty PCAP: no limit can be below it. */
const FILE_HEADER_BYTES = 24n
/** API section 8. */
const SLICE_MAX_BYTES = 12_288n
/** api-decisions section 4. */
export const WAIT_MAX_S = 600n
/** The limit of the program that compiles it. */
const BPF_MAX_BYTES = 16_384
const REGEX_MAX_BYTES = 1_024
const PORT_MAX = 255n

function takeCaptureName(parameters: QueryParameters): string {
  const name = parameters.require('StreamName')
  if (!CAPTURE_NAME.test(name)) throw badParameter('StreamName', `${CAPTURE_NAME_RULE}, got ${quote(name)}`)
  return name
}

/** An empty filter is none: scripts pass an unset variable. */
function takeBpf(parameters: QueryParameters): string | undefined {
  const text = parameters.take('FilterBPF')
  if (text === undefined || text.trim() === '') return undefined
  checkFilterText('FilterBPF', text, { maxBytes: BPF_MAX_BYTES, forbidden: CONTROL_CHARACTER })
  return text
}

/** A NUL would end the expression early inside the compiler; line ends and tabs are harmless. */
const CONTROL_CHARACTER = /[^\P{Cc}\t\r\n]/u
const NUL_CHARACTER = /\0/

/** White space is a pattern of its own, so that only the empty text is none. */
function takeRegex(parameters: QueryParameters): string | undefined {
  const text = parameters.take('FilterRE')
  if (text === undefined || text === '') return undefined
  checkFilterText('FilterRE', text, { maxBytes: REGEX_MAX_BYTES, forbidden: NUL_CHARACTER })
  return withoutSlashes(text)
}

/** "/text/i" as other tools write it: between slashes, with flags behind them, is "(?i)text". */
function withoutSlashes(text: string): string {
  const [, pattern = '', flags = ''] = /^\/(.+)\/((?!.*(.).*\3)[ism]*)$/s.exec(text) ?? []
  if (pattern === '') return text
  return flags === '' ? pattern : `(?${flags})${pattern}`
}

interface FilterTextRule {
  readonly maxBytes: number
  readonly forbidden: RegExp
}

function checkFilterText(name: string, text: string, { maxBytes, forbidden }: FilterTextRule): void {
  if (Buffer.byteLength(text) > maxBytes) {
    throw badParameter(name, `is longer than ${maxBytes} bytes; shorten the expression`)
  }
  const position = text.search(forbidden)
  if (position < 0) return
  throw badParameter(name, `holds a control character at character ${position}; remove it`, position)
}

/** FilterPort is the legacy spelling of one condition. */
function takeFrameFilter(parameters: QueryParameters): readonly FrameCondition[] {
  const conditions = parseFrameFilter(parameters.take('FilterFrame') ?? '')
  const port = parameters.takeInteger('FilterPort', 0n, PORT_MAX)
  if (port === undefined) return conditions
  return [...conditions, { field: 'capture.port', op: '==', values: [Number(port)] }]
}

function takeTimeSource(
  kind: DownloadKind,
  parameters: QueryParameters,
  { timeSourceAliases: aliases = {}, zone }: ParseContext,
): Pick<DownloadQuery, 'timeSource' | 'timeSourceWord'> {
  const word = parameters.take('TSMode') || 'nic'
  const timeSource = timeSourceOf(word, aliases)
  if (timeSource !== undefined) return { timeSource }
  if (isUnitMode(kind, word)) return { timeSource: 'nic' }
  // Who leaves local times to the device leaves its own words to it, too.
  if (zone === undefined) return { timeSource: 'nic', timeSourceWord: word }
  const units = kind === 'timerange' ? TIME_UNIT_WORDS : []
  const words = [...TIME_SOURCES, ...Object.keys(aliases), ...units]
  throw badParameter('TSMode', `must be one of ${words.join(', ')}, got ${quote(word)}`)
}

/** In a vendor's time packets are sorted, and what comes next is not known before the range's end. */
function takeFollow(parameters: QueryParameters, timeSource: TimeSource): boolean {
  const follow = parameters.takeSwitch('Follow') ?? false
  if (!follow || timeSource === 'nic') return follow
  throw badParameter(
    'Follow',
    `cannot sort packets by ${timeSource} as they come; leave out TSMode or Follow`,
  )
}

/** The second time, packets that came late are in their places before what was sent. */
function takeAfter(parameters: QueryParameters, follow: boolean): bigint | undefined {
  const afterBytes = parameters.takeInteger('After', 0n, INTEGER_MAX)
  if (afterBytes === undefined || !follow) return afterBytes
  throw badParameter(
    'After',
    'cannot find its place in a followed download, which packets that come late change; ask for the packets from a time on by TSBegin, or leave out Follow',
  )
}

function toNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value)
}
