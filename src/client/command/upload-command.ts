/** `capfleet upload`: sends a capture file to a device, where it becomes a capture. */
import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import type { Readable } from 'node:stream'
import type { Command } from 'commander'
import type { z } from 'zod'
import { bytesText, packetsText } from '../../shared/base/amounts.ts'
import type { CAPTURE_UPLOADED } from '../../shared/contract/capture-answers.ts'
import { FLEET_PARAMETERS } from '../../shared/query/download/gateway-options.ts'
import { ClientFailure, usageFailure } from '../client-failure.ts'
import type { GatewayClient } from '../gateway-client.ts'
import { type ConnectOptions, connect, contextOption } from './access/connect.ts'
import { captureNameOf, STANDARD_INPUT } from './common/capture-name-of.ts'
import { statOf } from './common/existing-file.ts'
import { createProgressBar, type ProgressBar } from './common/progress-bar.ts'
import { type GivenOptions, QueryFlags } from './common/query-flags.ts'
import { runClient } from './common/run-client.ts'

type UploadOptions = ConnectOptions & GivenOptions & { readonly name?: string }
type Uploaded = z.infer<typeof CAPTURE_UPLOADED>

/** The names of parameters that the gateway may reject, as flags. */
const OWN_FLAGS: Readonly<Record<string, string>> = { StreamName: '--name', FileName: '<file>' }

export function defineUpload(command: Command): void {
  const flags = new QueryFlags([FLEET_PARAMETERS])
  command.argument(
    '<file>',
    'PCAP or pcapng, also compressed by gzip, zstd, xz, lz4 or bzip2; "-": standard input',
  )
  flags
    .addTo(command)
    .option('--name <text>', 'name of the capture; without it: that of the file')
    .addOption(contextOption())
    .action((path: string, options: UploadOptions) =>
      runClient(
        async (signal) => {
          const device = flags.query(options)
          if (device.length === 0)
            throw usageFailure('use --device to name the device that is to store the file')
          const name = options.name ?? captureNameOf(path)
          const client = await connect(options)
          await using input = await openInput(path)
          const fileName = path === STANDARD_INPUT ? 'stdin' : basename(path)
          const query = [...device, ['StreamName', name] as const, ['FileName', fileName] as const]
          report(name, await send(client, { name, query, input, signal }))
        },
        (parameter) => OWN_FLAGS[parameter] ?? flags.flagOf(parameter),
      ),
    )
}

interface Input extends AsyncDisposable {
  readonly stream: Readable
  /** undefined: a pipe. */
  readonly bytes: number | undefined
}

/** Fails with a ClientFailure, or with the system's error. */
async function openInput(path: string): Promise<Input> {
  const isPipe = path === STANDARD_INPUT
  if (isPipe && process.stdin.isTTY) {
    throw usageFailure(
      '"-" reads a capture file from a pipe, as in: xz -dc a.pcap.xz | capfleet upload - --device lon1 --name a',
    )
  }
  const there = isPipe ? undefined : await statOf(path)
  if (there?.isDirectory()) throw usageFailure(`${path} is a folder; name a file`)
  const stream = isPipe ? process.stdin : createReadStream(path)
  return {
    stream,
    bytes: there?.isFile() ? there.size : undefined,
    [Symbol.asyncDispose]: async () => void stream.destroy(),
  }
}

interface UploadRequest {
  readonly name: string
  readonly query: readonly (readonly [string, string])[]
  readonly input: Input
  readonly signal: AbortSignal
}

/** Fails with a ClientFailure, with the error of the input, or with the signal's reason. */
async function send(client: GatewayClient, { name, query, input, signal }: UploadRequest): Promise<Uploaded> {
  const bar = createProgressBar(`upload ${name}`)
  const { bytes } = input
  try {
    const file = { bytes, pieces: counted(input, bar) }
    const { value } = await client.json<Uploaded>('/v1/captures', { method: 'POST', query, file, signal })
    bar.finish(`${packetsText(value.Packets)}, ${bytesText(Number(value.Bytes))} in the store`)
    return value
  } catch (error) {
    bar.clear()
    if (signal.aborted) process.stderr.write(`upload ${name}: stopped; nothing was stored\n`)
    throw error
  }
}

async function* counted({ stream, bytes }: Input, bar: ProgressBar): AsyncGenerator<Uint8Array, void> {
  let sent = 0
  for await (const piece of stream as AsyncIterable<Buffer>) {
    yield piece
    sent += piece.length
    bar.update(sent, bytes)
  }
  bar.tell(`${bytesText(sent)} sent; the device imports them`)
}

/** Fails with a ClientFailure if a part of the file is missing, so that the exit status says so. */
function report(name: string, { Damages, Notes, OutOfTimeRange }: Uploaded): void {
  const print = (text: string): void => void process.stderr.write(`upload ${name}: ${text}\n`)
  for (const note of Notes) print(`the file ${note}`)
  if (OutOfTimeRange !== '0') {
    print(
      `left out, because PCAP can only store times from 1970 to 2106-02-07: ${packetsText(OutOfTimeRange)}`,
    )
  }
  for (const { Offset, Compressed, Message } of Damages) {
    const where = `offset ${Offset}${Compressed ? ' of the decompressed data' : ''}`
    print(`the file is damaged at ${where}: ${Message}; the packets before that were imported`)
  }
  if (Damages.length === 0) return
  throw new ClientFailure('incomplete', 'the end of the file could not be imported', {
    code: 'bad-capture-file',
  })
}
