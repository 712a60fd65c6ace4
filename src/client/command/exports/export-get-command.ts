/** `capfleet export get`: the files of an export, and the manifest that describes them. */
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { bytesText } from '../../../shared/base/amounts.ts'
import { PARTIAL_ELEMENTS } from '../../../shared/query/download/query-values.ts'
import { ClientFailure, usageFailure } from '../../client-failure.ts'
import type { Export } from '../../followed-export.ts'
import type { GatewayClient } from '../../gateway-client.ts'
import { type ConnectOptions, connect, contextOption } from '../access/connect.ts'
import { createProgressBar } from '../common/progress-bar.ts'
import { Retries } from '../common/retries.ts'
import { runClient } from '../common/run-client.ts'
import { type DownloadOutput, OutputFile, PART_ENDING, refuseThere } from '../output/output-file.ts'
import { OutputPipe } from '../output/output-pipe.ts'
import { lockPart } from '../output/part-lock.ts'
import { type ExportedFile, fetchExportFile } from './export-file.ts'
import { exportId } from './export-id.ts'

interface ExportGetOptions extends ConnectOptions {
  readonly output?: string
  readonly folder: string
  readonly force?: boolean
}

const RETRIES_MAX = 10

export function defineExportGet(command: Command): void {
  command
    .argument('<export>', 'its id')
    .option('-o, --output <file>', 'output file, for an export of one file; "-": standard output')
    .option('--folder <folder>', 'output folder; each file gets its own name', '.')
    .option('--force', 'replace existing files')
    .addOption(contextOption())
    .action((id: string, options: ExportGetOptions) =>
      runClient(async (signal) => getExport(await connect(options), id, { options, signal })),
    )
}

interface ExportGetRun {
  readonly options: ExportGetOptions
  readonly signal: AbortSignal
}

async function getExport(client: GatewayClient, id: string, run: ExportGetRun): Promise<void> {
  const { options, signal } = run
  const path = `/v1/exports/${encodeURIComponent(exportId(id))}`
  const { value } = await client.json<Export>(path, { signal })
  const { text: manifest } = await client.json(`${path}/manifest`, { signal })
  const { files } = value
  if (options.output !== undefined && files.length !== 1) {
    throw usageFailure(`export ${id} has ${files.length} files; say where to put them with --folder`)
  }
  await mkdir(options.folder, { recursive: true })
  for (const [index, file] of files.entries())
    await getFile(client, { ...run, exportId: id, file, part: index + 1 })
  if (options.output !== '-') await writeFile(manifestPath(id, options), manifest)
  if (value.state === 'partial') {
    throw new ClientFailure(
      'incomplete',
      `packets are missing, as listed in the manifest; capfleet export fill ${id} fetches what becomes available again`,
      {
        code: 'partial',
      },
    )
  }
}

interface FileRun extends ExportGetRun {
  readonly exportId: string
  readonly file: ExportedFile
  readonly part: number
}

async function getFile(
  client: GatewayClient,
  { options, signal, exportId, file, part }: FileRun,
): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const output = await openOutput(file, options, opened)
  const bar = createProgressBar(output.name, { from: output.bytes })
  const say = (text: string): void => {
    bar.clear()
    process.stderr.write(`${output.name}: ${text}\n`)
  }
  try {
    await fetchExportFile({
      client,
      exportId,
      file,
      part,
      output,
      signal,
      retries: new Retries({ max: RETRIES_MAX, signal, say }),
      onProgress: (bytes) => bar.update(bytes, Number(file.bytes)),
    })
  } catch (error) {
    bar.clear()
    await output.fail(PARTIAL_ELEMENTS.none).catch(() => undefined)
    throw error
  }
  bar.finish(`complete, ${bytesText(output.bytes)}, sha256 ${file.sha256}`)
}

async function openOutput(
  file: ExportedFile,
  { output, folder, force }: ExportGetOptions,
  opened: AsyncDisposableStack,
): Promise<DownloadOutput> {
  if (output === '-') return new OutputPipe()
  // The name comes from the gateway and must not lead out of the folder.
  const path = resolve(output ?? join(folder, basename(file.name)))
  await refuseThere(path, force === true)
  opened.use(await lockPart(`${path}${PART_ENDING}`))
  return opened.use(await OutputFile.open(path))
}

function manifestPath(id: string, { output, folder }: ExportGetOptions): string {
  return output === undefined ? join(folder, `${basename(id)}.manifest.json`) : `${output}.manifest.json`
}
