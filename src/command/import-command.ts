import { basename, resolve } from 'node:path'
import type { CaptureRecord } from '../../appliance/capture-record.ts'
import type { RecorderClient } from '../../appliance/recorder-client.ts'
import { withRecorder } from '../../appliance/recorder-session.ts'
import { CapfleetError } from '../base/error.ts'
import { createProgressBar } from './progress-bar.ts'

export interface ImportCommandOptions {
  readonly store: string
  readonly name?: string | undefined
  readonly description?: string | undefined
}

/** One capture to make. */
export interface ImportJob {
  readonly name: string
  /** Absolute paths. */
  readonly files: readonly string[]
  readonly description?: string | undefined
}

/**
 * `capfleet import`: through the store's recorder when one runs, else as its writer meanwhile.
 * Fails with bad-capture-file after the last file when a part of any could not be read.
 */
export async function importFiles(
  files: readonly string[],
  options: ImportCommandOptions,
  signal: AbortSignal,
): Promise<void> {
  const paths = files.map((file) => resolve(file))
  const { name, description } = options
  const jobs: readonly ImportJob[] =
    name === undefined
      ? paths.map((path) => ({ name: captureNameOf(path), files: [path], description }))
      : [{ name, files: paths, description }]
  let damages = 0
  await withRecorder(resolve(options.store), async (recorder) => {
    for (const job of jobs) damages += (await importAsCapture(recorder, job, signal)).damages.length
  })
  if (damages > 0) {
    throw new CapfleetError('bad-capture-file', 'some input was damaged; what was whole is imported')
  }
}

/** Imports with a progress bar on stderr, and says there what could not be imported. */
export async function importAsCapture(
  recorder: RecorderClient,
  job: ImportJob,
  signal: AbortSignal,
): Promise<CaptureRecord> {
  const bar = createProgressBar(`import ${job.name}`)
  const record = await recorder.importCapture(job, {
    signal,
    onProgress: ({ inputBytes, totalInputBytes }) => bar.update(Number(inputBytes), Number(totalInputBytes)),
  })
  bar.finish(`${record.packets} packets from ${record.sources.join(', ')}`)
  for (const { file, offset, compressed, message } of record.damages) {
    const where = `offset ${offset}${compressed ? ' of the decompressed data' : ''}`
    process.stderr.write(
      `import ${job.name}: ${file} is damaged at ${where}: ${message}; the packets before are imported\n`,
    )
  }
  if (record.packetsOutOfTimeRange > 0n) {
    process.stderr.write(
      `import ${job.name}: left out, because PCAP carries times from 1970 to 2106-02-07 only: ${record.packetsOutOfTimeRange} packets\n`,
    )
  }
  return record
}

/** "dump.2026.pcapng.gz" -> "dump.2026"; characters that a capture name cannot have become "_". */
export function captureNameOf(path: string): string {
  const stem = basename(path)
    .replace(/\.(gz|zst|zstd)$/i, '')
    .replace(/\.(pcap|pcapng|cap|dmp|ntar)$/i, '')
  const name = stem.replace(/[^A-Za-z0-9._-]/g, '_').replace(/^[^A-Za-z0-9]+/, '')
  if (name === '') {
    throw new CapfleetError('bad-parameter', `no capture name can be made from ${path}; give one with --name`)
  }
  return name.slice(0, 64)
}
