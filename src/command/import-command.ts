import { basename, resolve } from 'node:path'
import { withRecorder } from '../../appliance/recorder-session.ts'
import { CapfleetError } from '../base/error.ts'
import { createProgressBar } from './progress-bar.ts'

export interface ImportCommandOptions {
  readonly store: string
  readonly name?: string | undefined
  readonly description?: string | undefined
}

/** `capfleet import`: through the store's recorder when it runs, else as its writer meanwhile. */
export async function importFiles(
  files: readonly string[],
  options: ImportCommandOptions,
  signal: AbortSignal,
): Promise<void> {
  const paths = files.map((file) => resolve(file))
  const jobs = options.name === undefined ? paths.map((path) => ({ name: captureNameOf(path), files: [path] })) : [{ name: options.name, files: paths }]
  const damaged: string[] = []
  await withRecorder(options.store, async (recorder) => {
    for (const job of jobs) {
      const bar = createProgressBar(`import ${job.name}`)
      const result = await recorder.importCapture(
        { ...job, description: options.description },
        { signal, onProgress: ({ inputBytes, totalInputBytes }) => bar.update(Number(inputBytes), Number(totalInputBytes)) },
      )
      bar.finish(`${result.packets} packets from ${job.files.length} file${job.files.length === 1 ? '' : 's'}`)
    }
  })
  if (damaged.length > 0) throw new CapfleetError('bad-capture-file', damaged.join('; '))
}

/** "dump.2026.pcapng.gz" -> "dump.2026"; characters that a capture name cannot have become "_". */
export function captureNameOf(path: string): string {
  const stem = basename(path)
    .replace(/\.(gz|zst|zstd)$/i, '')
    .replace(/\.(pcap|pcapng|cap|dmp|ntar)$/i, '')
  const name = stem.replace(/[^A-Za-z0-9._-]/g, '_').replace(/^[^A-Za-z0-9]+/, '')
  if (name === '') throw new CapfleetError('bad-parameter', `no capture name can be made from ${path}; give one with --name`)
  return name.slice(0, 64)
}
