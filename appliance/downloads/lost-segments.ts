/** Segments in the log whose files are missing: readers count them as lost, and return everything else. */
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { StreamFiles } from '../../native/download-options.ts'
import {
  LOG_ENTRY_BYTES,
  type LogEntry,
  readLogEntry,
  SegmentFlag,
  writeLogEntry,
} from '../../native/segment-entry.ts'
import { SegmentTable } from '../store/segment-table.ts'
import { entriesOf, pathOf, type StoredCapture } from '../store/stored-capture.ts'
import type { PreparedDownload } from './prepare-download.ts'

/** The same, with segments that have no packets on disk marked as damaged. */
export async function withoutLost(found: PreparedDownload): Promise<PreparedDownload> {
  const { selection } = found
  return {
    ...found,
    selection: { ...selection, streams: await Promise.all(selection.streams.map(markLost)) },
  }
}

/** The same capture, with segments without packets on disk marked as damaged and empty. `folder` is the capture's. */
export async function withLostMarked(capture: StoredCapture, folder: string): Promise<StoredCapture> {
  const table = new SegmentTable()
  for (const port of capture.table.ports) {
    for (const entry of entriesOf(port)) {
      const isThere = await holdsPackets(folder, entry)
      table.apply(isThere ? entry : { ...entry, packets: 0n, flags: entry.flags | SegmentFlag.damaged })
    }
  }
  return { ...capture, table }
}

async function markLost(stream: StreamFiles): Promise<StreamFiles> {
  const segments = Buffer.from(stream.segments)
  for (let at = 0; at < segments.length; at += LOG_ENTRY_BYTES) {
    const entry = readLogEntry(segments, at)
    if (!(await holdsPackets(dirname(stream.folder), entry)))
      writeLogEntry(segments, at, { ...entry, flags: entry.flags | SegmentFlag.damaged })
  }
  return { ...stream, segments }
}

async function holdsPackets(folder: string, entry: LogEntry): Promise<boolean> {
  return await stat(`${pathOf(folder, entry)}.pcap`).then(
    () => true,
    () => false,
  )
}
