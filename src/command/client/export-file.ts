import { createHash } from 'node:crypto'
import { ClientFailure } from '../../client/client-failure.ts'
import type { Export } from '../../client/followed-export.ts'
import type { GatewayClient } from '../../client/gateway-client.ts'
import type { DownloadOutput } from './output-file.ts'
import type { Retries } from './retries.ts'

export type ExportedFile = Export['files'][number]

export interface ExportFileOptions {
  readonly client: GatewayClient
  readonly exportId: string
  readonly file: ExportedFile
  /** From 1. */
  readonly part: number
  readonly output: DownloadOutput
  readonly retries: Retries
  readonly signal: AbortSignal
  readonly onProgress: (bytes: number) => void
}

/**
 * Brings a file of an export, behind what is here of it. It is whole when it has the length and the SHA-256 that the
 * export tells. Fails with a ClientFailure, or the signal's reason.
 */
export async function fetchExportFile(options: ExportFileOptions): Promise<void> {
  const { file, output, retries } = options
  if (output.bytes > Number(file.bytes)) await output.truncate(0)
  for (let rounds = 1; ; rounds += 1) {
    const hasOldBytes = output.bytes > 0
    await receiveAll(options, retries)
    if ((await sha256Of(output)) === file.sha256) return await output.finish()
    if (!hasOldBytes || rounds > 1) throw wrongDigest(file)
    // What was here was of another file.
    await output.truncate(0)
  }
}

async function receiveAll(options: ExportFileOptions, retries: Retries): Promise<void> {
  const { file, output } = options
  while (output.bytes < Number(file.bytes)) {
    const before = output.bytes
    try {
      await receiveRest(options)
    } catch (error) {
      if (!(error instanceof ClientFailure)) throw error
      if (output.bytes > before) retries.progressed()
      await retries.pause(error)
    }
  }
}

async function receiveRest({
  client,
  exportId,
  file,
  part,
  output,
  signal,
  onProgress,
}: ExportFileOptions): Promise<void> {
  const range = { range: `bytes=${output.bytes}-`, 'if-range': `"${file.sha256}"` }
  const answer = await client.open(`/v1/exports/${encodeURIComponent(exportId)}/file`, {
    query: [['Part', String(part)]],
    headers: output.bytes === 0 ? {} : range,
    signal,
  })
  if (answer.status !== 206) await output.truncate(0)
  for await (const chunk of answer.body) {
    await output.write([chunk])
    onProgress(output.bytes)
    if (output.bytes > Number(file.bytes)) throw wrongDigest(file)
  }
  if (output.bytes < Number(file.bytes)) {
    throw new ClientFailure('incomplete', 'the answer ended before the end of the file', {
      code: 'connection-broken',
      canRetry: true,
    })
  }
}

async function sha256Of(output: DownloadOutput): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of output.kept()) hash.update(piece)
  return hash.digest('hex')
}

function wrongDigest({ name, bytes, sha256 }: ExportedFile): ClientFailure {
  return new ClientFailure(
    'incomplete',
    `${name} came otherwise than it is: it has ${bytes} bytes and the sha256 ${sha256}`,
    {
      code: 'wrong-digest',
    },
  )
}
