import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import type { ImportedCapture, ImportWatch } from '../../appliance/link/import-request.ts'
import type { RecorderClient } from '../../appliance/link/recorder-client.ts'
import { refuseWhereNoStoreIs, withRecorder } from '../../appliance/recorder-session.ts'
import { captureNameOf, STANDARD_INPUT } from '../client/command/common/capture-name-of.ts'
import { createProgressBar, type ProgressBar } from '../client/command/common/progress-bar.ts'
import { packetsText } from '../shared/base/amounts.ts'
import { CapfleetError } from '../shared/base/error.ts'
import { describeError } from '../shared/base/program.ts'

export interface ImportCommandOptions {
  readonly store: string
  readonly name?: string | undefined
  readonly description?: string | undefined
  /** Whether the oldest packets of the store may be removed if there is no room. */
  readonly evict?: boolean | undefined
  /** Whether the store may be created. */
  readonly create?: boolean | undefined
}

/** One capture to create. */
export interface ImportJob {
  readonly name: string
  /** Absolute paths. */
  readonly files: readonly string[]
  readonly description?: string | undefined
  readonly mayEvict?: boolean | undefined
}

/**
 * `capfleet import`: through the store's recorder if one is running, else as the store's writer meanwhile. One bad
 * file among many does not affect the others. Fails with bad-capture-file after the last file if anything was not
 * imported; stderr has named it by then.
 */
export async function importFiles(
  files: readonly string[],
  options: ImportCommandOptions,
  signal: AbortSignal,
): Promise<void> {
  const store = resolve(options.store)
  if (options.create !== true) refuseWhereNoStoreIs(store, 'correct --store, or add --create to make one')
  const paths = files.map((file) => (file === STANDARD_INPUT ? file : resolve(file)))
  const { name } = options
  // Checked before a store is created.
  if (name === undefined && files.includes(STANDARD_INPUT)) captureNameOf(STANDARD_INPUT)
  const captures = name === undefined ? paths.map((path) => [path]) : [paths]
  let losses = 0
  await withRecorder(store, async (recorder) => {
    for (const inputs of captures) {
      const outcome = await importUnlessBad(
        recorder,
        () => ({
          name: name ?? captureNameOf(inputs[0] ?? ''),
          files: inputs,
          description: options.description,
          mayEvict: options.evict,
        }),
        signal,
      )
      losses += outcome.losses
    }
  })
  failOnLosses(losses)
}

/** Whether this can be read only once: standard input, or a path that is not a regular file, such as a named pipe. */
async function isPipe(path: string): Promise<boolean> {
  if (path === STANDARD_INPUT) return true
  const there = await stat(path).catch(() => undefined)
  return there !== undefined && (there.isFIFO() || there.isCharacterDevice() || there.isSocket())
}

/** Where the bytes of a pipe come from. Fails with bad-parameter if it is a terminal. */
function openPipe(path: string): Readable {
  if (path !== STANDARD_INPUT) return createReadStream(path)
  if (process.stdin.isTTY) {
    throw new CapfleetError(
      'bad-parameter',
      '"-" reads a capture file from a pipe, as in: xz -dc a.pcap.xz | capfleet import - --name a --store FOLDER',
    )
  }
  return process.stdin
}

export interface ImportOutcome {
  /** undefined: nothing was imported. */
  readonly record: ImportedCapture | undefined
  /** Files, or ends of files, that are not in the capture. */
  readonly losses: number
}

/**
 * Like importAsCapture, but reports on stderr why nothing was imported, even if no job could be created. Only fails if
 * other files would fail too: with store-unavailable, or when the signal aborts.
 */
export async function importUnlessBad(
  recorder: RecorderClient,
  job: () => ImportJob,
  signal: AbortSignal,
): Promise<ImportOutcome> {
  try {
    const record = await importAsCapture(recorder, job(), signal)
    return { record, losses: record.damages.length }
  } catch (error) {
    const isOfFile = error instanceof CapfleetError && error.code !== 'store-unavailable'
    if (signal.aborted || !isOfFile) throw error
    process.stderr.write(`import: ${withPlace(describeError(error))}\n`)
    return { record: undefined, losses: 1 }
  }
}

/** Fails with bad-capture-file, so that the exit status tells a script that something is missing. */
export function failOnLosses(losses: number): void {
  if (losses === 0) return
  throw new CapfleetError(
    'bad-capture-file',
    `not everything was imported; missing files and ends of files, listed above: ${losses}`,
  )
}

/** Imports with a progress bar on stderr, and reports there what could not be imported. */
export async function importAsCapture(
  recorder: RecorderClient,
  job: ImportJob,
  signal: AbortSignal,
): Promise<ImportedCapture> {
  const bar = createProgressBar(`import ${job.name}`)
  const onProgress: ImportWatch['onProgress'] = ({ inputBytes, totalInputBytes }) =>
    bar.update(Number(inputBytes), Number(totalInputBytes))
  const record = await importJob(recorder, job, { signal, onProgress }, bar).catch((error: unknown) => {
    bar.clear()
    if (signal.aborted) process.stderr.write(`import ${job.name}: stopped; nothing was imported\n`)
    throw error
  })
  bar.finish(`${packetsText(record.packets)} from ${record.sources.join(', ')}`)
  for (const damage of record.damages)
    process.stderr.write(`import ${job.name}: ${withPlace(describeDamage(damage))}\n`)
  for (const { file, message } of record.notes ?? [])
    process.stderr.write(`import ${job.name}: ${file} ${message}\n`)
  if (record.packetsOutOfTimeRange > 0n) {
    process.stderr.write(
      `import ${job.name}: left out, because PCAP can only store times from 1970 to 2106-02-07: ${packetsText(record.packetsOutOfTimeRange)}\n`,
    )
  }
  return record
}

async function importJob(
  recorder: RecorderClient,
  job: ImportJob,
  watch: ImportWatch,
  bar: ProgressBar,
): Promise<ImportedCapture> {
  const pipes = await Promise.all(job.files.map(isPipe))
  if (!pipes.includes(true)) return await recorder.importCapture(job, watch)
  const [path, ...others] = job.files
  if (path === undefined || others.length > 0) {
    throw new CapfleetError(
      'bad-parameter',
      `a pipe must be the only input of a capture; import it by itself`,
    )
  }
  const pipe = openPipe(path)
  const body = async function* (): AsyncGenerator<Uint8Array, void> {
    let bytes = 0
    for await (const piece of pipe) {
      bytes += piece.length
      bar.update(bytes, undefined)
      yield piece
    }
  }
  try {
    return await recorder.importStream(
      { ...job, source: path === STANDARD_INPUT ? 'stdin' : basename(path) },
      body(),
      watch,
    )
  } finally {
    pipe.destroy()
  }
}

/** The advice of the importer names a setting, but this command has none. */
function withPlace(message: string): string {
  return message.replace(
    /raise imports\.maxRatio\b/,
    "raise imports.maxRatio in the appliance's configuration, and import while its recorder is running",
  )
}

function describeDamage({ file, offset, compressed, message }: ImportedCapture['damages'][number]): string {
  if (offset === 0n) return `${file} was left out: ${message}`
  const where = `offset ${offset}${compressed ? ' of the decompressed data' : ''}`
  return `${file} is damaged at ${where}: ${message}; the packets before that were imported`
}
