/** The engine without HTTP (engine/engine_run_main.cc), over files that were imported into folders of a store. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importCaptureFiles } from '../../../native/import-capture-files.ts'
import { compileFilter } from '../../support/processes/compile-filter.ts'

export const ENGINE_RUN = fileURLToPath(new URL('../../../native/build/capfleet-engine-run', import.meta.url))

/** What the engine does with the packets of its streams. */
export interface EngineWork {
  readonly filter?: string
  readonly sliceBytes?: number
}

/** Imports each file as its own stream; resolves with their folders. */
export async function importAsStreams(folder: string, paths: readonly string[]): Promise<string[]> {
  const streams: string[] = []
  for (const [index, path] of paths.entries()) {
    const directory = join(folder, String(index))
    await mkdir(directory, { recursive: true })
    await importCaptureFiles({ files: [path], directory })
    streams.push(join(directory, 'cap0'))
  }
  return streams
}

/** The arguments of the program for this work; a compiled filter is written to the folder. */
export async function engineArguments(
  folder: string,
  { filter, sliceBytes }: EngineWork,
): Promise<readonly string[]> {
  const words = sliceBytes === undefined ? [] : ['--slice', String(sliceBytes)]
  if (filter === undefined) return words
  const { status, program, message } = compileFilter(filter)
  if (status !== 0) throw new Error(message)
  const path = join(folder, 'filter.bpf')
  await writeFile(path, program)
  return [...words, '--filter', path]
}
