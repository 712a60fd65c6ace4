import { createHash, type Hash } from 'node:crypto'
import { ClientFailure } from '../../client-failure.ts'
import type { Export } from '../../followed-export.ts'
import type { GatewayClient } from '../../gateway-client.ts'
import type { Retries } from '../common/retries.ts'
import type { DownloadOutput } from '../output/output-file.ts'

export type ExportedFile = Export['files'][number]

export interface ExportFileOptions {
  readonly client: GatewayClient
  readonly exportId: string
  readonly file: ExportedFile
  /** Number of the part, counted from 1. */
  readonly part: number
  readonly output: DownloadOutput
  readonly retries: Retries
  readonly signal: AbortSignal
  readonly onProgress: (bytes: number) => void
}

/**
 * Downloads a file of an export, continuing after what is already here. It is complete when it has the length and
 * SHA-256 stated by the export. Fails with a ClientFailure, or the signal's reason.
 */
export async function fetchExportFile(options: ExportFileOptions): Promise<void> {
  await new ExportFile(options).fetch()
}

class ExportFile {
  readonly #options: ExportFileOptions
  readonly #bytes: number
  /** Covers all bytes that the output has. */
  #hash: Hash = createHash('sha256')

  constructor(options: ExportFileOptions) {
    this.#options = options
    this.#bytes = Number(options.file.bytes)
  }

  async fetch(): Promise<void> {
    const { file, output } = this.#options
    for await (const piece of output.kept()) this.#hash.update(piece)
    const hasOldBytes = output.bytes > 0
    await this.#receiveAll()
    if (!this.#isWhole() && hasOldBytes) {
      // What was here belonged to another file.
      await this.#beginAnew()
      await this.#receiveAll()
    }
    if (!this.#isWhole()) throw wrongDigest(file)
    await output.finish()
  }

  #isWhole(): boolean {
    const { file, output } = this.#options
    return output.bytes === this.#bytes && this.#hash.copy().digest('hex') === file.sha256
  }

  async #beginAnew(): Promise<void> {
    await this.#options.output.truncate(0)
    this.#hash = createHash('sha256')
  }

  async #receiveAll(): Promise<void> {
    const { output, retries } = this.#options
    while (output.bytes < this.#bytes) {
      const before = output.bytes
      try {
        await this.#receiveRest()
      } catch (error) {
        if (!(error instanceof ClientFailure)) throw error
        if (output.bytes > before) retries.progressed()
        await retries.pause(error)
      }
    }
  }

  async #receiveRest(): Promise<void> {
    const { client, exportId, file, part, output, signal, onProgress } = this.#options
    const range = { range: `bytes=${output.bytes}-`, 'if-range': `"${file.sha256}"` }
    using answer = await client.open(`/v1/exports/${encodeURIComponent(exportId)}/file`, {
      query: [['Part', String(part)]],
      headers: output.bytes === 0 ? {} : range,
      signal,
    })
    if (answer.status !== 206 && output.bytes > 0) await this.#beginAnew()
    for await (const chunk of answer.body) {
      await output.write([chunk])
      this.#hash.update(chunk)
      onProgress(output.bytes)
      if (output.bytes > this.#bytes) throw wrongDigest(file)
    }
    if (output.bytes === this.#bytes) return
    throw new ClientFailure('incomplete', 'the response ended before the end of the file', {
      code: 'connection-broken',
      canRetry: true,
    })
  }
}

function wrongDigest({ name, bytes, sha256 }: ExportedFile): ClientFailure {
  return new ClientFailure(
    'incomplete',
    `${name} arrived damaged: expected ${bytes} bytes and the sha256 ${sha256}`,
    { code: 'wrong-digest' },
  )
}
