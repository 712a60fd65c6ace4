import type { ImportResult } from '../../../native/import-capture-files.ts'
import { type LogEntry, LogEntryKind, SegmentFlag } from '../../../native/segment-entry.ts'

/** Log entries for segments that the engine has finished. */
export function finishedEntries(streams: ImportResult['streams']): readonly LogEntry[] {
  return streams.flatMap(({ port, linkType, snaplen, segments }) =>
    segments.map(({ isFlat, ...segment }) => ({
      ...segment,
      kind: LogEntryKind.finished,
      port,
      flags: isFlat ? SegmentFlag.flat : 0,
      linkType,
      snaplen,
    })),
  )
}
