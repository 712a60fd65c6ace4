/** `capfleet get`: a download into a file, into several files, or into a pipe. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { DOWNLOAD_TABLES } from '../../../shared/query/download/parse-download-query.ts'
import { ClientFailure, usageFailure } from '../../client-failure.ts'
import { type DownloadTarget, downloadTarget } from '../../download-target.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { type ConnectOptions, connect, contextOption } from '../access/connect.ts'
import { type AlertOptions, addAlertFlags, refuseAlertFlags } from '../alerts/alert-flags.ts'
import {
  addDownloadFlags,
  EVERYDAY,
  FILES_AND_WAITING,
  type LastOption,
  packetQuery,
} from '../common/download-flags.ts'
import { type GivenOptions, QueryFlags } from '../common/query-flags.ts'
import { runClient } from '../common/run-client.ts'
import { foundBefore } from './download-journal.ts'
import { getAlerts } from './get-alerts.ts'
import { type DownloadOptions, type DownloadRun, runDownload, STANDARD_OUTPUT } from './one-download.ts'
import { seenDownload, seenSearch } from './seen-target.ts'

interface GetOptions extends ConnectOptions, LastOption, DownloadOptions, AlertOptions {
  readonly seen?: readonly string[]
}

export function defineGet(command: Command): void {
  const flags = new QueryFlags(DOWNLOAD_TABLES.fleet, ['Wait'])
  addDownloadFlags(command, flags)
  command
    .optionsGroup(EVERYDAY)
    .option(
      '-o, --output <file>',
      'output file; "-": standard output; default: the name that the gateway gives; for several alerts: a folder',
    )
    .option(
      '--seen <address>',
      'the packets of this address or network, from the devices where it was seen in the range; may be repeated',
      (address: string, others: readonly string[] = []) => [...others, address],
    )
  addAlertFlags(command, 'download')
  command
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
          if (options.seen !== undefined && options.alert !== undefined)
            throw usageFailure('--alert has the addresses; leave out --seen')
          if (options.alert !== undefined)
            return await getAlerts({ ...options, alert: options.alert }, { capture, query, signal })
          refuseAlertFlags(options)
          if (options.seen !== undefined) return await getSeen(capture, query, { options, signal })
          const client = await connect(options)
          await runDownload(client, downloadTarget(capture, query), { options, signal }).catch((error) => {
            throw capture === undefined ? withPartialAdvice(error, query) : error
          })
        },
        (name) => (name === 'Wait' ? '--wait' : flags.flagOf(name)),
      ),
    )
}

/** One device that is down fails the merge of all. */
function withPartialAdvice(error: unknown, query: QueryPairs): unknown {
  const { Device = '*', OnError } = Object.fromEntries(query)
  if (!(error instanceof ClientFailure) || !DOWN_CODES.has(error.code)) return error
  if (OnError !== undefined || !/[,*?=]/.test(Device)) return error
  const advice = '--on-error partial downloads what the others have'
  return new ClientFailure(error.kind, `${error.message}; ${advice}`, error.facts)
}

const DOWN_CODES: ReadonlySet<string> = new Set(['device-unreachable', 'device-timeout'])

const RESUMES =
  '\nA download that breaks off resumes automatically; after Ctrl-C the same command resumes it.'

async function getSeen(
  capture: string | undefined,
  query: QueryPairs,
  { options, signal }: DownloadRun & { readonly options: GetOptions },
): Promise<void> {
  const { seen: addresses = [], output, force, quiet } = options
  if (capture !== undefined) throw usageFailure('--seen finds the captures itself; leave out the name')
  const client = await connect(options)
  const order = { addresses, query }
  const say = (text: string): void => {
    if (quiet !== true) process.stderr.write(`${text}\n`)
  }
  const isNew = output === undefined || output === STANDARD_OUTPUT || force === true
  const asked = { url: client.access.url, search: seenSearch(order) }
  const before = isNew ? undefined : await foundBefore(resolve(output), asked)
  if (before === undefined) {
    const { target, removed } = await seenDownload(client, order, signal)
    for (const text of removed) say(text)
    await runFound(client, target, { options, signal })
    return
  }
  say(`${output}: resumes what was found before; --force searches again`)
  await runFound(client, before, { options, signal })
}

async function runFound(client: GatewayClient, target: DownloadTarget, run: DownloadRun): Promise<void> {
  await runDownload(client, target, run)
  const { incomplete } = target.found ?? {}
  if (incomplete !== undefined) throw new ClientFailure('incomplete', incomplete, { code: 'incomplete' })
}
