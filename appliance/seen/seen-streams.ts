/** The segments in which a search for addresses looks. */
import type { StreamFiles } from '../../native/download-options.ts'
import { LOG_ENTRY_BYTES, readLogEntry } from '../../native/segment-entry.ts'
import { NETWORK_LINK_TYPES, typeOfWord } from '../../src/shared/pcap/link-types.ts'
import { portFolder } from '../store/store-paths.ts'
import { linkTypeOf, portsOf, type StoredCapture, selectSegments } from '../store/stored-capture.ts'

/** Half-open. */
export interface SearchRange {
  readonly beginNs: bigint
  readonly endNs: bigint
}

export interface SearchedStreams {
  /** By link type, without the bits for the frame check sequence; older captures first, then by port. */
  readonly byLinkType: ReadonlyMap<number, readonly StreamFiles[]>
  /** Link types of the range in whose packets no addresses are found: these are not searched. */
  readonly otherLinkTypes: readonly number[]
}

/** The segments that overlap the range, of all captures (newest first). */
export function streamsToSearch(
  captures: readonly StoredCapture[],
  { beginNs, endNs }: SearchRange,
  folderOf: (capture: StoredCapture) => string,
): SearchedStreams {
  const byLinkType = new Map<number, StreamFiles[]>()
  const other = new Set<number>()
  for (const capture of captures.toReversed()) {
    if (capture.startNs >= endNs || capture.endNs <= beginNs) continue
    const folder = folderOf(capture)
    for (const port of portsOf(capture)) {
      const segments = selectSegments(capture, port, { fromNs: beginNs, toNs: endNs })
      const word = linkTypeOf(capture, port)
      if (segments.length === 0 || word === undefined) continue
      const linkType = typeOfWord(word)
      if (!NETWORK_LINK_TYPES.has(linkType)) {
        other.add(linkType)
        continue
      }
      const streams = byLinkType.get(linkType) ?? []
      streams.push({ port, folder: portFolder(folder, port), segments })
      byLinkType.set(linkType, streams)
    }
  }
  return { byLinkType, otherLinkTypes: [...other].toSorted((a, b) => a - b) }
}

export function allStreams({ byLinkType }: SearchedStreams): readonly StreamFiles[] {
  return [...byLinkType.values()].flat()
}

/** Stored bytes that are read before progress is reported, and before it is seen that the limit is exceeded. */
const PART_BYTES = 268_435_456n

/** Divides the spans (ascending, apart) into parts of about PART_BYTES of stored packets: where segments begin. */
export function partsOf(
  streams: readonly StreamFiles[],
  spans: readonly SearchRange[],
): readonly SearchRange[] {
  const segments: { readonly minNs: bigint; readonly bytes: bigint }[] = []
  for (const stream of streams) {
    const entries = Buffer.from(stream.segments)
    for (let at = 0; at < entries.length; at += LOG_ENTRY_BYTES) segments.push(readLogEntry(entries, at))
  }
  segments.sort((a, b) => (a.minNs < b.minNs ? -1 : 1))
  const parts: SearchRange[] = []
  let next = 0
  for (const { beginNs, endNs } of spans) {
    let [fromNs, bytes] = [beginNs, 0n]
    for (; (segments[next]?.minNs ?? endNs) < endNs; next++) {
      const segment = segments[next]
      if (segment === undefined) break
      if (segment.minNs > fromNs && bytes >= PART_BYTES) {
        parts.push({ beginNs: fromNs, endNs: segment.minNs })
        ;[fromNs, bytes] = [segment.minNs, 0n]
      }
      bytes += segment.bytes
    }
    parts.push({ beginNs: fromNs, endNs })
  }
  return parts
}
