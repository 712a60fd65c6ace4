/** Segments that the log names and whose files are gone: a download counts them as lost, and gives everything else. */
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { StreamFiles } from '../../native/download-options.ts'
import { LOG_ENTRY_BYTES, readLogEntry, SegmentFlag, writeLogEntry } from '../../native/segment-entry.ts'
import { pathOf } from '../store/stored-capture.ts'
import type { PreparedDownload } from './prepare-download.ts'

/** The same, with segments that have no packets on the disk marked as damaged. */
export async function withoutLost(found: PreparedDownload): Promise<PreparedDownload> {
  const { selection } = found
  return {
    ...found,
    selection: { ...selection, streams: await Promise.all(selection.streams.map(markLost)) },
  }
}

async function markLost(stream: StreamFiles): Promise<StreamFiles> {
  const segments = Buffer.from(stream.segments)
  for (let at = 0; at < segments.length; at += LOG_ENTRY_BYTES) {
    const entry = readLogEntry(segments, at)
    const isThere = await stat(`${pathOf(dirname(stream.folder), entry)}.pcap`).then(
      () => true,
      () => false,
    )
    if (!isThere) writeLogEntry(segments, at, { ...entry, flags: entry.flags | SegmentFlag.damaged })
  }
  return { ...stream, segments }
}
