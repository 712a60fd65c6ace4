import { lookBackNs } from '../../native/addon.ts'
import type { StreamFiles } from '../../native/download-options.ts'
import { countFlagged, SegmentFlag } from '../../native/segment-entry.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { typeOfWord } from '../../src/shared/pcap/link-types.ts'
import type { DownloadQuery } from '../../src/shared/query/download/download-query.ts'
import type { FrameCondition } from '../../src/shared/query/filter/frame-filter.ts'
import { portFolder } from '../store/store-paths.ts'
import { linkTypeOf, portsOf, type StoredCapture, selectSegments } from '../store/stored-capture.ts'

export interface StreamSelection {
  /**
   * Only segments that overlap the range, and earlier ones that a vendor's clock needs; older captures first, then by
   * port.
   */
  readonly streams: readonly StreamFiles[]
  /**
   * Their common link type word, or only the type if they differ in the length of the frame check sequence; for an
   * empty selection that of its newest capture, or Ethernet. Of several, which only pcapng can hold, the first.
   */
  readonly linkType: number
  /** All link types of the selection; more than one only in pcapng. */
  readonly linkTypes: readonly number[]
  /** Full names of the captures that are read. */
  readonly captures: readonly string[]
}

export interface SelectOptions {
  readonly query: Pick<DownloadQuery, 'beginNs' | 'endNs' | 'timeSource' | 'frameFilter'> &
    Partial<Pick<DownloadQuery, 'format' | 'filterBpf' | 'dedupNs'>>
  readonly folderOf: (capture: StoredCapture) => string
}

const LINK_TYPE_ETHERNET = 1

interface Chosen {
  readonly capture: StoredCapture
  /** Link type word of the segments, if it is known. */
  readonly linkType: number | undefined
  readonly files: StreamFiles
}

/**
 * What a download of these captures (newest first) must read. Fails with mixed-link-type if its file cannot hold it, or
 * if a parameter is only for one link type.
 */
export function selectStreams(captures: readonly StoredCapture[], options: SelectOptions): StreamSelection {
  const neededNs = neededFromNs(options.query)
  const chosen = captures.toReversed().flatMap((capture) => chooseStreams(capture, { ...options, neededNs }))
  const words = [...new Set(chosen.flatMap(({ linkType }) => linkType ?? []))]
  const types = [...new Set(words.map(typeOfWord))]
  const oneType = types.length > 1 ? needsOneType(options.query) : undefined
  if (oneType !== undefined) throw mixedLinkType(chosen, oneType)
  const linkType = (words.length > 1 ? types : words)[0] ?? linkTypeOfEmpty(captures)
  return {
    streams: chosen.map(({ files }) => files),
    linkType,
    linkTypes: types.length === 0 ? [typeOfWord(linkType)] : types,
    captures: [...new Set(chosen.map(({ capture }) => capture.name))],
  }
}

/** The streams of the captures at any time, apart from conditions on ports. */
export function streamsOfAnyTime(
  captures: readonly StoredCapture[],
  { query: { frameFilter }, folderOf }: SelectOptions,
): readonly StreamFiles[] {
  const query = { beginNs: 0n, endNs: LAST_NS, timeSource: 'nic', frameFilter } as const
  return captures
    .toReversed()
    .flatMap((capture) => chooseStreams(capture, { query, folderOf, neededNs: 0n }))
    .map(({ files }) => files)
}

const LAST_NS = 2n ** 63n - 1n

/** Why the packets must be of one link type; undefined: they may be of several. */
function needsOneType({ format, filterBpf }: SelectOptions['query']): string | undefined {
  if (format !== 'pcapng') return 'a PCAP file can have only one: ask for Format=pcapng, or'
  return filterBpf === undefined ? undefined : 'FilterBPF is for one:'
}

/** A range may cover thousands of captures; this determines the time to the first byte. */
function chooseStreams(
  capture: StoredCapture,
  { query, folderOf, neededNs }: SelectOptions & { readonly neededNs: bigint },
): Chosen[] {
  const { beginNs, endNs, frameFilter } = query
  if (capture.startNs >= endNs || capture.endNs <= beginNs) return []
  const folder = folderOf(capture)
  return portsOf(capture)
    .filter((port) => isPortWanted(port, frameFilter))
    .flatMap((port) => {
      const wanted = selectSegments(capture, port, { fromNs: beginNs, toNs: endNs })
      if (wanted.length === 0) return []
      const segments =
        neededNs === beginNs ? wanted : selectSegments(capture, port, { fromNs: neededNs, toNs: endNs })
      const linkType = linkTypeOf(capture, port)
      return [{ capture, linkType, files: { port, folder: portFolder(folder, port), segments } }]
    })
}

/** Number of segments of the selection that are known to have lost packets. */
export function damagedSegments({ streams }: Pick<StreamSelection, 'streams'>): number {
  return streams.reduce((sum, { segments }) => sum + countFlagged(segments, SegmentFlag.damaged), 0)
}

/** The time from which packets must be read, so that those of the range get the time of the source. */
function neededFromNs({ beginNs, timeSource }: SelectOptions['query']): bigint {
  const backNs = lookBackNs(timeSource)
  return backNs === 'whole-capture' ? 0n : beginNs - backNs
}

/**
 * Whether the conditions on capture.port allow packets of this port. A vendor's clock only learns from its own port.
 */
export function isPortWanted(port: number, conditions: readonly FrameCondition[]): boolean {
  return conditions
    .filter(({ field }) => field === 'capture.port')
    .every(({ op, values }) => values.includes(port) === (op === '=='))
}

function linkTypeOfEmpty(captures: readonly StoredCapture[]): number {
  for (const capture of captures) {
    const [port] = portsOf(capture)
    if (port !== undefined) return linkTypeOf(capture, port) ?? LINK_TYPE_ETHERNET
  }
  return LINK_TYPE_ETHERNET
}

/** The common ones; others are named by number. */
const LINK_TYPE_NAMES: Readonly<Record<number, string>> = {
  0: 'NULL',
  1: 'EN10MB',
  101: 'RAW',
  105: 'IEEE802_11',
  113: 'LINUX_SLL',
  127: 'IEEE802_11_RADIOTAP',
  228: 'IPV4',
  276: 'LINUX_SLL2',
}

function mixedLinkType(chosen: readonly Chosen[], oneType: string): CapfleetError {
  const ofTypes = Map.groupBy(
    chosen.filter(({ linkType }) => linkType !== undefined),
    ({ linkType }) => typeOfWord(linkType ?? LINK_TYPE_ETHERNET),
  )
  const linkTypes = [...ofTypes].map(([linkType, parts]) => ({
    linkType,
    name: LINK_TYPE_NAMES[linkType] ?? `LINKTYPE ${linkType}`,
    captures: [...new Set(parts.map(({ capture }) => capture.name))],
    ports: [...new Set(parts.map(({ files }) => files.port))],
  }))
  const [name, ...others] = new Set(chosen.map(({ capture }) => capture.name))
  const isOneCapture = others.length === 0
  const list = linkTypes.map((type) =>
    isOneCapture ? `${type.name} (port ${type.ports.join(', ')})` : `${type.name} (${type.captures[0]})`,
  )
  const advice = isOneCapture
    ? 'choose a port with FilterPort, or several of one type with FilterFrame=capture.port==0,1'
    : 'choose a capture or range of one type, or a port of that type with FilterPort'
  return new CapfleetError(
    'mixed-link-type',
    `${isOneCapture ? `the capture ${name}` : 'the selection'} contains several link types: ${list.join(', ')}; ${oneType} ${advice}`,
    { members: { linkTypes: linkTypes.map(({ ports: _ports, ...type }) => type) } },
  )
}
