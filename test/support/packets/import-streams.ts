import { mkdir, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { finishedEntries } from '../../../appliance/recorder/writer/finished-entries.ts'
import { portFolder } from '../../../appliance/store/store-paths.ts'
import { pathOf } from '../../../appliance/store/stored-capture.ts'
import type { StreamFiles } from '../../../native/download-options.ts'
import { importCaptureFiles, type StreamSummary } from '../../../native/import-capture-files.ts'
import { LOG_ENTRY_BYTES, packLogEntries, readLogEntry } from '../../../native/segment-entry.ts'

/** Imports capture files into a new folder below `root`, without an appliance. */
export async function importStreams(root: string, files: readonly string[]): Promise<StreamFiles[]> {
  const directory = join(root, `capture-${(await readdir(root)).length}`)
  await mkdir(directory)
  const { streams } = await importCaptureFiles({ files, directory })
  return streamsIn(directory, streams)
}

/** Streams imported into this folder, in the engine's form. */
export function streamsIn(directory: string, streams: readonly StreamSummary[]): StreamFiles[] {
  return streams.map((stream) => ({
    port: stream.port,
    folder: portFolder(directory, stream.port),
    segments: packLogEntries(finishedEntries([stream])),
  }))
}

/** Paths of the segments, without extension. */
export function segmentPathsOf({ folder, segments }: StreamFiles): string[] {
  const entries = Buffer.from(segments)
  return Array.from({ length: entries.length / LOG_ENTRY_BYTES }, (_, index) =>
    pathOf(dirname(folder), readLogEntry(entries, index * LOG_ENTRY_BYTES)),
  )
}
