import type { StreamFiles } from '../native/addon.ts'
import { CapfleetError } from '../src/base/error.ts'
import type { DownloadQuery } from '../src/query/download-query.ts'
import type { CaptureRecord, StreamRecord } from './capture-record.ts'
import { segmentPath } from './store-paths.ts'

export interface StreamSelection {
  /** Only segments that reach into the range; older captures first, then by port. */
  readonly streams: readonly StreamFiles[]
  /** Link type word of all of them; of an empty selection that of its newest capture, or Ethernet. */
  readonly linkType: number
  /** Full names of the captures that are read. */
  readonly captures: readonly string[]
}

export interface SelectOptions {
  readonly range: Pick<DownloadQuery, 'beginNs' | 'endNs'>
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
  const linkTypes = [...new Set(chosen.map(({ stream }) => stream.linkType))]
  if (linkTypes.length > 1) throw mixedLinkType(chosen)
  return {
    streams: chosen.map(({ files }) => files),
    linkType: linkTypes[0] ?? linkTypeOfEmpty(captures),
    captures: [...new Set(chosen.map(({ capture }) => capture.name))],
  }
}

function chooseStreams(capture: CaptureRecord, { range, folderOf }: SelectOptions): Chosen[] {
  if (capture.startNs >= range.endNs || capture.endNs <= range.beginNs) return []
  return capture.streams.flatMap((stream) => {
    const segments = stream.segments
      .filter(({ minNs, maxNs }) => maxNs >= range.beginNs && minNs < range.endNs)
      .map(({ number }) => segmentPath(folderOf(capture), stream.port, number))
    return segments.length === 0 ? [] : [{ capture, stream, files: { port: stream.port, segments } }]
  })
}

function linkTypeOfEmpty(captures: readonly CaptureRecord[]): number {
  return captures.find(({ streams }) => streams.length > 0)?.streams[0]?.linkType ?? LINK_TYPE_ETHERNET
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
    const names = captures.get(stream.linkType) ?? new Set()
    captures.set(stream.linkType, names.add(capture.name))
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
