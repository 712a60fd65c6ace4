/** Segments of a capture's record in the form that the engine takes them. */
import type { StreamFiles } from '../../native/download-options.ts'
import { LogEntryKind, packLogEntries, SegmentFlag } from '../../native/segment-entry.ts'
import type { SegmentRecord, StreamRecord } from './capture-record.ts'
import { portFolder } from './store-paths.ts'

export interface EntryOptions {
  /** The segment that is being written, if it is one of them. */
  readonly growing?: SegmentRecord | undefined
}

/** Entries of some segments of a stream. A record does not tell how large their indexes are. */
export function entriesOf(
  { port, linkType, snaplen }: Omit<StreamRecord, 'segments'>,
  segments: readonly SegmentRecord[],
  { growing }: EntryOptions = {},
): Buffer {
  return packLogEntries(
    segments.map((segment) => ({
      ...segment,
      kind: LogEntryKind.finished,
      port,
      flags: SegmentFlag.flat | (segment === growing ? SegmentFlag.growing : 0),
      linkType,
      snaplen,
      sideBytes: 0,
    })),
  )
}

/** Some segments of a stream of the capture in this folder. */
export function streamFilesOf(
  captureFolder: string,
  stream: Omit<StreamRecord, 'segments'>,
  segments: readonly SegmentRecord[],
  options?: EntryOptions,
): StreamFiles {
  const { port } = stream
  return { port, folder: portFolder(captureFolder, port), segments: entriesOf(stream, segments, options) }
}
