import { mkdir, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { streamFilesOf } from '../../../appliance/store/segment-entries.ts'
import { segmentPath } from '../../../appliance/store/store-paths.ts'
import type { StreamFiles } from '../../../native/download-options.ts'
import { importCaptureFiles } from '../../../native/import-capture-files.ts'
import { LOG_ENTRY_BYTES, readLogEntry } from '../../../native/segment-entry.ts'

/** Imports capture files into a new folder below `root`, without an appliance. */
export async function importStreams(root: string, files: readonly string[]): Promise<StreamFiles[]> {
  const directory = join(root, `capture-${(await readdir(root)).length}`)
  await mkdir(directory)
  const { streams } = await importCaptureFiles({ files, directory })
  return streams.map((stream) => streamFilesOf(directory, stream, stream.segments))
}

/** Paths of the segments, without ending. */
export function segmentPathsOf({ port, folder, segments }: StreamFiles): string[] {
  const entries = Buffer.from(segments)
  return Array.from({ length: entries.length / LOG_ENTRY_BYTES }, (_, index) =>
    segmentPath(dirname(folder), port, readLogEntry(entries, index * LOG_ENTRY_BYTES).number),
  )
}
