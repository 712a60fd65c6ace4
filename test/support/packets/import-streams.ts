import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { StreamFiles } from '../../../native/download-options.ts'
import { importCaptureFiles, type SegmentSummary } from '../../../native/import-capture-files.ts'

/** Imports capture files into a new folder below `root`, without an appliance. */
export async function importStreams(root: string, files: readonly string[]): Promise<StreamFiles[]> {
  return await importInto(join(root, `capture-${(await readdir(root)).length}`), files)
}

/** Imports capture files into this folder, which is made. */
export async function importInto(directory: string, files: readonly string[]): Promise<StreamFiles[]> {
  await mkdir(directory)
  const { streams } = await importCaptureFiles({ files, directory })
  return streams.map(({ port, segments }) => ({
    port,
    segments: segments.map((segment) => pathOfSegment(directory, port, segment)),
  }))
}

/** The path of a segment without ending. */
export function pathOfSegment(
  directory: string,
  port: number,
  { number, isFlat }: Pick<SegmentSummary, 'number' | 'isFlat'>,
): string {
  const group = isFlat ? '' : String(Math.floor(number / 1_000)).padStart(5, '0')
  return join(directory, `cap${port}`, group, String(number).padStart(8, '0'))
}
