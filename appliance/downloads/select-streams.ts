import { lookBackNs } from '../../native/addon.ts'
import type { StreamFiles } from '../../native/download-options.ts'
import { CapfleetError } from '../../src/base/error.ts'
import type { DownloadQuery } from '../../src/query/download-query.ts'
import type { FrameCondition } from '../../src/query/frame-filter.ts'
import type { CaptureRecord, StreamRecord } from '../store/capture-record.ts'
import { streamFilesOf } from '../store/segment-entries.ts'

export interface StreamSelection {
  /**
   * Only segments that reach into the range, and those before it that the clock of a vendor needs;
   * older captures first, then by port.
   */
  readonly streams: readonly StreamFiles[]
  /**
   * Link type word of all of them, or their type alone where they differ in the length of the frame check sequence; of
   * an empty selection that of its newest capture, or Ethernet.
   */
  readonly linkType: number
  /** Full names of the captures that are read. */
  readonly captures: readonly string[]
}

export interface SelectOptions {
  readonly query: Pick<DownloadQuery, 'beginNs' | 'endNs' | 'timeSource' | 'frameFilter'>
  readonly folderOf: (capture: CaptureRecord) => string
}

const LINK_TYPE_ETHERNET = 1

interface Chosen {
  readonly capture: CaptureRecord
  readonly stream: StreamRecord
  readonly files: StreamFiles
}

/**
 * What a download of these captures (newest first) has to read. Fails with mixed-link-type where
 * one PCAP cannot hold it.
 */
export function selectStreams(captures: readonly CaptureRecord[], options: SelectOptions): StreamSelection {
  const chosen = captures.toReversed().flatMap((capture) => chooseStreams(capture, options))
  const words = [...new Set(chosen.map(({ stream }) => stream.linkType))]
  const types = [...new Set(words.map(typeOfWord))]
  if (types.length > 1) throw mixedLinkType(chosen)
  return {
    streams: chosen.map(({ files }) => files),
    linkType: (words.length > 1 ? types : words)[0] ?? linkTypeOfEmpty(captures),
    captures: [...new Set(chosen.map(({ capture }) => capture.name))],
  }
}

function chooseStreams(capture: CaptureRecord, { query, folderOf }: SelectOptions): Chosen[] {
  const { beginNs, endNs, frameFilter } = query
  if (capture.startNs >= endNs || capture.endNs <= beginNs) return []
  const needed = neededFromNs(query)
  return capture.streams
    .filter((stream) => isPortWanted(stream.port, frameFilter))
    .flatMap((stream) => {
      const before = stream.segments.filter(({ minNs, maxNs }) => maxNs >= needed && minNs < endNs)
      if (!before.some(({ maxNs }) => maxNs >= beginNs)) return []
      // The last segment of a capture that goes on is the one that is being written.
      const growing = capture.state === 'active' ? before.at(-1) : undefined
      return [{ capture, stream, files: streamFilesOf(folderOf(capture), stream, before, { growing }) }]
    })
}

/** From which time on packets must be read, so that those of the range get the time of the source. */
function neededFromNs({ beginNs, timeSource }: SelectOptions['query']): bigint {
  const backNs = lookBackNs(timeSource)
  return backNs === 'whole-capture' ? 0n : beginNs - backNs
}

/** Whether the conditions on capture.port leave packets of this port. A vendor's clock learns from its own port alone. */
function isPortWanted(port: number, conditions: readonly FrameCondition[]): boolean {
  return conditions
    .filter(({ field }) => field === 'capture.port')
    .every(({ op, values }) => values.includes(port) === (op === '=='))
}

function linkTypeOfEmpty(captures: readonly CaptureRecord[]): number {
  return captures.find(({ streams }) => streams.length > 0)?.streams[0]?.linkType ?? LINK_TYPE_ETHERNET
}

/** Above the type, the word may say how long a frame check sequence is. */
function typeOfWord(word: number): number {
  return word & 0xffff
}

/** The usual ones; others are named by number. */
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

function mixedLinkType(chosen: readonly Chosen[]): CapfleetError {
  const captures = new Map<number, Set<string>>()
  for (const { capture, stream } of chosen) {
    const type = typeOfWord(stream.linkType)
    const names = captures.get(type) ?? new Set()
    captures.set(type, names.add(capture.name))
  }
  const linkTypes = [...captures].map(([linkType, names]) => ({
    linkType,
    name: LINK_TYPE_NAMES[linkType] ?? `LINKTYPE ${linkType}`,
    captures: [...names],
  }))
  const list = linkTypes.map(({ name, captures: [first] }) => `${name} (${first})`).join(', ')
  return new CapfleetError(
    'mixed-link-type',
    `the selection holds several link types: ${list}; one PCAP has one: choose a capture or a range of one type`,
    { members: { linkTypes } },
  )
}
