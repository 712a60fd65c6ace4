/** `capfleet get`: a download into a file, into several files, or into a pipe. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { z } from 'zod'
import { bytesText } from '../../../shared/base/amounts.ts'
import type { FLEET_ESTIMATE } from '../../../shared/contract/gateway-answers.ts'
import { attachedName } from '../../../shared/query/download-file-name.ts'
import { DOWNLOAD_TABLES } from '../../../shared/query/parse-download-query.ts'
import { ClientFailure, usageFailure } from '../../client-failure.ts'
import { type DownloadTarget, downloadTarget } from '../../download-target.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { type ConnectOptions, connect, contextOption } from '../access/connect.ts'
import {
  addDownloadFlags,
  EVERYDAY,
  FILES_AND_WAITING,
  type LastOption,
  packetQuery,
} from '../common/download-flags.ts'
import { shownNs } from '../common/list-output.ts'
import { type GivenOptions, QueryFlags } from '../common/query-flags.ts'
import { Retries } from '../common/retries.ts'
import { runClient } from '../common/run-client.ts'
import { PART_ENDING } from '../output/output-file.ts'
import { openPlace } from './download-place.ts'
import { type DownloadEnd, DownloadSession } from './download-session.ts'
import { DownloadTalk } from './download-talk.ts'
import { seenDownload } from './seen-target.ts'

interface GetOptions extends ConnectOptions, LastOption {
  readonly output?: string
  readonly seen?: readonly string[]
  readonly split?: string
  readonly force?: boolean
  readonly wait?: string
  readonly retries: string
  readonly quiet?: boolean
}

const STANDARD_OUTPUT = '-'

export function defineGet(command: Command): void {
  const flags = new QueryFlags(DOWNLOAD_TABLES.fleet, ['Wait'])
  addDownloadFlags(command, flags)
  command
    .optionsGroup(EVERYDAY)
    .option(
      '-o, --output <file>',
      'output file; "-": standard output; default: the name that the gateway gives',
    )
    .option(
      '--seen <address>',
      'the packets of this address or network, from the devices where it was seen in the range; may be repeated',
      (address: string, others: readonly string[] = []) => [...others, address],
    )
    .optionsGroup(FILES_AND_WAITING)
    .option('--split <size>', 'write files of at most this size, such as 500MiB: name-0001.pcap and so on')
    .option('--force', 'replace an existing file, and start a partial download over')
    .option('--wait <seconds>', 'how long to wait in the queue; default: as long as the gateway allows')
    .option('--retries <count>', 'how often to retry without receiving new bytes', '10')
    .option('-q, --quiet', 'print only errors')
    .addOption(contextOption())
    .addHelpText('after', RESUMES)
    .action((capture: string | undefined, options: GetOptions & GivenOptions) =>
      runClient(
        async (signal) => {
          const query = await packetQuery(flags, options)
          if (options.seen !== undefined) return await getSeen(capture, query, { options, signal })
          const target = downloadTarget(capture, query)
          await get(await connect(options), target, { options, signal })
        },
        (name) => (name === 'Wait' ? '--wait' : flags.flagOf(name)),
      ),
    )
}

const RESUMES =
  '\nA download that breaks off resumes automatically; after Ctrl-C the same command resumes it.'

interface GetRun {
  readonly options: GetOptions
  readonly signal: AbortSignal
}

async function getSeen(capture: string | undefined, query: QueryPairs, run: GetRun): Promise<void> {
  const { seen: addresses = [] } = run.options
  if (capture !== undefined) throw usageFailure('--seen finds the captures itself; leave out the name')
  const client = await connect(run.options)
  const { target, incomplete } = await seenDownload(client, { addresses, query }, run.signal)
  await get(client, target, run)
  if (incomplete !== undefined) throw new ClientFailure('incomplete', incomplete, { code: 'incomplete' })
}

async function get(
  client: GatewayClient,
  target: DownloadTarget,
  { options, signal }: GetRun,
): Promise<void> {
  const waitS = count('--wait', options.wait)
  const retriesMax = count('--retries', options.retries) ?? 0
  const isPipe = options.output === STANDARD_OUTPUT
  if (isPipe && options.split !== undefined)
    throw usageFailure('--split writes several files; give -o <file>')
  const path = isPipe ? undefined : resolve(options.output ?? (await nameOf(client, target, signal)))
  const asked = { url: client.access.url, ...target }
  await using place = await openPlace(path, asked, { split: options.split, isForced: options.force === true })
  using talk = new DownloadTalk(client, { name: place.output.name, isQuiet: options.quiet === true })
  void talk.learnTotal(() => estimatedBytes(client, target, signal))
  talk.begin(place.output.bytes)
  const session = new DownloadSession({
    client,
    asked,
    output: place.output,
    journal: place.journal,
    watch: talk,
    signal,
    waitS,
    retries: new Retries({ max: retriesMax, signal, say: (text) => talk.say(text) }),
  })
  let isFinished = false
  try {
    const end = await session.run()
    isFinished = true
    talk.finish(summaryOf(end, place.output.files))
    refuseIncomplete(end)
  } catch (error) {
    talk.clear()
    if (path !== undefined && place.output.bytes > 0 && !isFinished) {
      const kept = `${place.output.name}${PART_ENDING} has ${bytesText(place.output.bytes)}`
      process.stderr.write(`capfleet: ${kept}; run the same command to resume\n`)
    }
    throw error
  }
}

/** Makes all checks of the download without taking a stream. */
async function nameOf(
  client: GatewayClient,
  { path, query }: DownloadTarget,
  signal: AbortSignal,
): Promise<string> {
  // The name does not depend on the list of addresses, which may be too long for HEAD.
  const short = query.filter(([name]) => name !== 'FilterAddresses')
  using head = await client
    .open(path, { method: 'HEAD', query: short, signal })
    .catch(async (error: unknown) => {
      // An answer to HEAD has no body with the reason. GET fails for the same reason, and reports it.
      using _answered = await client.open(path, { query, signal })
      throw error
    })
  const name = attachedName(head.headers.get('content-disposition') ?? '')
  if (name === undefined) throw usageFailure('the gateway gives the download no name; give -o <file>')
  return name
}

/** Expected length of an uncompressed body without a filter; else undefined. */
async function estimatedBytes(
  client: GatewayClient,
  { query }: DownloadTarget,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (query.some(([name]) => name === 'Compression')) return undefined
  const { value } = await client.json<z.infer<typeof FLEET_ESTIMATE>>('/v1/estimate', { query, signal })
  return value.exact ? Number(value.bytes) : undefined
}

/** For several files the hash is that of the body formed by all of them. */
function summaryOf({ bytes, sha256, receipt }: DownloadEnd, files = 1): string {
  const where = files === 1 ? '' : ` in ${files} files`
  const nothing = receipt.packets === '0' ? ' (0 packets: nothing matched)' : ''
  return `${receipt.status}, ${bytes} bytes${nothing}${where}, sha256 ${files === 1 ? '' : 'of all together '}${sha256}`
}

function refuseIncomplete({ receipt: { status, devices, nextNs } }: DownloadEnd): void {
  if (status === 'complete') return
  if (status === 'truncated') {
    throw new ClientFailure(
      'incomplete',
      `a limit ended the download; the next packet is at ${nextNs} ns (${shownNs(nextNs)})`,
      { code: 'truncated' },
    )
  }
  if (status === 'unverified') {
    const names = devices.filter((device) => device.status === 'unverified').map(({ device }) => device)
    throw new ClientFailure(
      'incomplete',
      `packets may be missing: ${names.join(', ')} ended the response by closing the connection, which looks the same as a cut-off response`,
      { code: status },
    )
  }
  const missing = devices.flatMap(({ device, missing: hole, corruptBlocks }) => [
    ...(hole === null ? [] : [`${device} from ${shownNs(hole.fromNs)} to ${shownNs(hole.toNs)}`]),
    ...(Number(corruptBlocks) > 0 ? [`${corruptBlocks} damaged blocks of ${device}`] : []),
  ])
  throw new ClientFailure('incomplete', `packets are missing: ${missing.join('; ')}`, { code: status })
}

function count(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,7}$/.test(text)) return Number(text)
  throw usageFailure(`${flag} must be a number, got ${JSON.stringify(text)}`)
}
