/** Estimates of downloads, and their receipts. */

import type { Command } from 'commander'
import type { z } from 'zod'
import { bytesText, packetsText } from '../../../shared/base/amounts.ts'
import { listText } from '../../../shared/base/list-text.ts'
import type { FLEET_ESTIMATE, RECEIPT, RECEIPTS } from '../../../shared/contract/gateway-answers.ts'
import { COUNT_PARAMETERS } from '../../../shared/query/download/count-query.ts'
import { DOWNLOAD_PARAMETERS } from '../../../shared/query/download/download-parameters.ts'
import { DOWNLOAD_TABLES } from '../../../shared/query/download/parse-download-query.ts'
import { ClientFailure, usageFailure } from '../../client-failure.ts'
import { downloadQuery } from '../../download-target.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { type ConnectOptions, connect, contextOption } from '../access/connect.ts'
import { addDownloadFlags, type LastOption, packetQuery } from '../common/download-flags.ts'
import {
  type Column,
  type FormatOptions,
  formatOption,
  print,
  printEntry,
  printListing,
  shownInstant,
} from '../common/list-output.ts'
import { type GivenOptions, QueryFlags } from '../common/query-flags.ts'
import { runClient } from '../common/run-client.ts'
import { idWithBeginning, isBeginning, writtenId } from '../common/written-id.ts'
import { ExactEstimate } from './exact-estimate.ts'

type ReportOptions = ConnectOptions & FormatOptions & LastOption & GivenOptions
type EstimateOptions = ReportOptions & { readonly exact?: true }
type Estimate = z.infer<typeof FLEET_ESTIMATE>
type DeviceEstimate = Estimate['devices'][number]
type Receipt = z.infer<typeof RECEIPT>

const ESTIMATE_COLUMNS: readonly Column<DeviceEstimate>[] = [
  { title: 'device', value: ({ device }) => device },
  { title: 'packets', value: (one) => ('error' in one ? undefined : one.packets) },
  {
    title: 'bytes',
    value: (one) => ('error' in one ? undefined : one.bytes),
    shown: (one) => ('error' in one ? '-' : bytesText(one.bytes ?? 0)),
  },
  { title: 'exact', value: (one) => ('error' in one ? undefined : one.exact) },
  { title: 'error', value: (one) => ('error' in one ? one.error.detail : undefined) },
]

const RECEIPT_COLUMNS: readonly Column<Receipt>[] = [
  { title: 'request', value: ({ id }) => id },
  { title: 'status', value: ({ status }) => status },
  { title: 'error', value: ({ error }) => error?.detail },
  { title: 'user', value: ({ user }) => user },
  {
    title: 'started',
    value: ({ startedAt }) => startedAt,
    shown: ({ startedAt }) => shownInstant(startedAt),
  },
  { title: 'ended', value: ({ endedAt }) => endedAt, shown: ({ endedAt }) => shownInstant(endedAt) },
  { title: 'path', value: ({ path }) => path },
  { title: 'query', value: ({ query }) => query },
  { title: 'continues', value: ({ resumedId }) => resumedId },
  { title: 'packets', value: ({ packets }) => packets },
  { title: 'bytes', value: ({ bytes }) => bytes },
  { title: 'sha256', value: ({ sha256 }) => sha256 },
  { title: 'next-ns', value: ({ nextNs }) => nextNs },
  {
    title: 'devices',
    value: ({ devices }) => devices.map(({ device, status }) => `${device}=${status}`).join(' '),
  },
]

export function defineEstimate(command: Command): void {
  const flags = new QueryFlags([...DOWNLOAD_TABLES.fleet, COUNT_PARAMETERS])
  command
    .option('--exact', 'counts by reading the packets, also with filters; takes streams, like a download')
    .addOption(formatOption())
    .addOption(contextOption())
    .action((capture: string | undefined, options: EstimateOptions) =>
      runClient(async (signal) => {
        const query = downloadQuery(capture, await packetQuery(flags, options))
        if (options.exact !== true) refuseCountFlags(query, flags)
        const client = await connect(options)
        if (options.exact === true) await new ExactEstimate(client, options).run(query, signal)
        else await estimate(client, query, { options, signal })
      }, flags.flagOf),
    )
  addDownloadFlags(command, flags)
}

/** Parameters that only matter to what reads packets. */
const COUNT_NAMES: readonly string[] = [COUNT_PARAMETERS.countBytesMax.name, DOWNLOAD_PARAMETERS.waitS.name]

function refuseCountFlags(query: QueryPairs, flags: QueryFlags): void {
  const [name] = query.find(([other]) => COUNT_NAMES.includes(other)) ?? []
  if (name !== undefined)
    throw usageFailure(`${flags.flagOf(name)} needs --exact: an estimate reads no packets, and does not wait`)
}

async function estimate(
  client: GatewayClient,
  query: QueryPairs,
  { options, signal }: { readonly options: EstimateOptions; readonly signal: AbortSignal },
): Promise<void> {
  const { text, value } = await client.json<Estimate>('/v1/estimate', { query, signal })
  await printListing({ text, entries: value.devices, columns: ESTIMATE_COLUMNS }, options)
  if (options.output === 'table') await print(`${sumText(value)}\n`)
  if (value.ignored.length > 0)
    process.stderr.write(`capfleet: the gateway ignores ${value.ignored.join(', ')}\n`)
  refuseUntold(value)
}

export function defineReceipt(command: Command): void {
  command
    .argument('<request>', 'the Capfleet-Request-Id of a download, or of one of your own its beginning')
    .addOption(formatOption())
    .addOption(contextOption())
    .action((id: string, options: ReportOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const whole = await wholeId(
          client,
          writtenId(id, 'request', 'it is the Capfleet-Request-Id of its answer'),
          signal,
        )
        const { text, value } = await client.json<Receipt>(`/v1/requests/${encodeURIComponent(whole)}`, {
          signal,
        })
        await printEntry({ text, entries: [value], columns: RECEIPT_COLUMNS }, options)
      }),
    )
}

/** As many as the gateway lists at once. */
const RECEIPTS_MAX = 1_000

/** The id that begins like this; any text that cannot be a beginning is left to the gateway. Fails with a ClientFailure. */
async function wholeId(client: GatewayClient, id: string, signal: AbortSignal): Promise<string> {
  if (!isBeginning(id)) return id
  const query = [['Limit', String(RECEIPTS_MAX)]] as const
  const { value } = await client.json<z.infer<typeof RECEIPTS>>('/v1/requests', { query, signal })
  const ids = value.requests.map((receipt) => receipt.id)
  const only = idWithBeginning(id, ids, 'of your downloads')
  if (only === undefined)
    throw new ClientFailure(
      'not-found',
      `no download of yours in the last 24 hours has an id that begins with ${id}; give the whole id of another user's`,
      { code: 'unknown-request' },
    )
  return only
}

/** An unknown size must not look like zero. */
function refuseUntold({ devices }: Estimate): void {
  const untold = devices.flatMap((one) => ('error' in one ? [one] : []))
  const [first] = untold
  if (first === undefined || untold.length < devices.length) return
  const names = listText(untold.map(({ device }) => device))
  throw new ClientFailure('device', `no device reported the size: ${names}`, { code: first.error.code })
}

function sumText({ packets, bytes, exact, devices }: Estimate): string {
  const untold = devices.filter((one) => 'error' in one).map(({ device }) => device)
  if (untold.length > 0 && untold.length === devices.length) return 'the size is not known'
  if (packets === null || bytes === null) return 'the size is not shown to users with a filter'
  const whose = untold.length === 0 ? 'in total' : `in total, without ${listText(untold)}`
  return `${exact ? whose : `${whose}, at most`}: ${packetsText(packets)}, ${bytesText(bytes)} before compression`
}
