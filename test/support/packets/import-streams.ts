import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { StreamFiles } from '../../../native/download-options.ts'
import { importCaptureFiles } from '../../../native/import-capture-files.ts'

/** Imports capture files into a new folder below `root`, without an appliance. */
export async function importStreams(root: string, files: readonly string[]): Promise<StreamFiles[]> {
  const directory = join(root, `capture-${(await readdir(root)).length}`)
  await mkdir(directory)
  const { streams } = await importCaptureFiles({ files, directory })
  return streams.map(({ port, segments }) => ({
    port,
    segments: segments.map(({ number }) => join(directory, `cap${port}`, String(number).padStart(8, '0'))),
  }))
}
