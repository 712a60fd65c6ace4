/** Lists: devices, captures, streams and waiting requests. */
import type { Command } from 'commander'
import type { z } from 'zod'
import { bytesText } from '../../shared/base/amounts.ts'
import { listText } from '../../shared/base/list-text.ts'
import type { FLEET_CAPTURE_LIST } from '../../shared/contract/capture-answers.ts'
import { LIST_PARAMETERS } from '../../shared/contract/device-parameters.ts'
import type { DEVICE_REPORTS, QUEUE } from '../../shared/contract/gateway-answers.ts'
import { FLEET_PARAMETERS } from '../../shared/query/download/gateway-options.ts'
import { ClientFailure } from '../client-failure.ts'
import type { GatewayClient } from '../gateway-client.ts'
import { type ConnectOptions, connect, contextOption } from './access/connect.ts'
import {
  type Column,
  type FormatOptions,
  formatOption,
  printListing,
  shownDuration,
  shownInstant,
  shownNs,
} from './common/list-output.ts'
import { type GivenOptions, QueryFlags } from './common/query-flags.ts'
import { runClient } from './common/run-client.ts'
import { idWithBeginning, isBeginning, writtenId } from './common/written-id.ts'

type ListOptions = ConnectOptions & FormatOptions & GivenOptions

type Device = z.infer<typeof DEVICE_REPORTS>['devices'][number]
type Capture = z.infer<typeof FLEET_CAPTURE_LIST>['List'][number]
type Queued = z.infer<typeof QUEUE>['requests'][number]

const DEVICE_COLUMNS: readonly Column<Device>[] = [
  { title: 'device', value: ({ name }) => name },
  { title: 'site', value: ({ site }) => site },
  {
    title: 'reachable',
    value: ({ reachable }) => reachable,
    shown: ({ reachable }) => reachableText(reachable),
  },
  {
    title: 'streams',
    value: ({ slotsUsed, slotsLimit, slotsTotal }) => `${slotsUsed ?? '?'}/${slotsLimit ?? slotsTotal}`,
  },
  { title: 'waiting', value: ({ waiting }) => waiting },
  {
    title: 'oldest',
    value: ({ oldestPacketNs }) => oldestPacketNs,
    shown: (one) => shownNs(one.oldestPacketNs),
  },
  {
    title: 'clock',
    value: ({ clockOffsetNs }) => clockOffsetNs,
    shown: (one) => clockText(one.clockOffsetNs),
  },
  { title: 'kind', value: ({ kind }) => kind },
  { title: 'version', value: ({ version }) => version },
  { title: 'error', value: ({ error }) => error?.detail },
]

const CAPTURE_COLUMNS: readonly Column<Capture>[] = [
  { title: 'device', value: ({ Device }) => Device },
  { title: 'capture', value: ({ StreamName }) => StreamName },
  { title: 'begin', value: ({ StartTS }) => StartTS, shown: ({ StartTS }) => shownNs(StartTS) },
  { title: 'end', value: ({ EndTS }) => EndTS, shown: ({ EndTS }) => shownNs(EndTS) },
  { title: 'packets', value: ({ PacketCnt }) => PacketCnt },
  { title: 'bytes', value: ({ ByteCnt }) => ByteCnt, shown: ({ ByteCnt }) => bytesText(ByteCnt) },
  { title: 'state', value: ({ State }) => State },
  { title: 'description', value: ({ Desc }) => Desc },
]

const QUEUE_COLUMNS: readonly Column<Queued>[] = [
  { title: 'request', value: ({ id }) => id },
  { title: 'state', value: ({ state }) => state },
  { title: 'place', value: ({ position }) => position },
  {
    title: 'in',
    value: ({ etaMs }) => etaMs,
    shown: ({ etaMs }) => (etaMs === null ? '-' : shownDuration(etaMs)),
  },
  { title: 'user', value: ({ user }) => user },
  {
    title: 'devices',
    value: ({ devices }) => devices.join(' '),
    shown: ({ devices }) => listText(devices, ' '),
  },
  {
    title: 'since',
    value: ({ enqueuedAt }) => enqueuedAt,
    shown: ({ enqueuedAt }) => shownInstant(enqueuedAt),
  },
  { title: 'capture', value: ({ capture }) => capture },
  { title: 'begin', value: ({ fromNs }) => fromNs, shown: ({ fromNs }) => shownNs(fromNs) },
  { title: 'end', value: ({ toNs }) => toNs, shown: ({ toNs }) => shownNs(toNs) },
  {
    title: 'sent',
    value: ({ bytes }) => bytes,
    shown: ({ bytes }) => (bytes === null ? '-' : bytesText(bytes)),
  },
  { title: 'export', value: ({ export: id }) => id },
]

export function defineDevices(command: Command): void {
  command
    .addOption(formatOption())
    .addOption(contextOption())
    .action((options: ListOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const { text, value } = await client.json<z.infer<typeof DEVICE_REPORTS>>('/v1/devices', { signal })
        await printListing({ text, entries: value.devices, columns: DEVICE_COLUMNS }, options)
      }),
    )
}

export function defineCaptures(command: Command): void {
  const flags = new QueryFlags([FLEET_PARAMETERS, LIST_PARAMETERS], [LIST_PARAMETERS.format.name])
  flags
    .addTo(command)
    .addOption(formatOption())
    .addOption(contextOption())
    .action((options: ListOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const { text, value } = await client.json<z.infer<typeof FLEET_CAPTURE_LIST>>('/stream/list', {
          query: flags.query(options),
          signal,
        })
        await printListing({ text, entries: value.List, columns: CAPTURE_COLUMNS }, options)
        for (const { Device, detail } of value.Unreachable)
          process.stderr.write(`capfleet: ${Device}: ${detail}\n`)
        if (value.Next !== undefined)
          process.stderr.write(`capfleet: there are more; --after ${value.Next}\n`)
      }, flags.flagOf),
    )
}

export function defineQueue(command: Command): void {
  command
    // Otherwise the list would take the options that are written after "cancel".
    .enablePositionalOptions()
    .addOption(formatOption())
    .addOption(contextOption())
    .action((options: ListOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const { text, value } = await client.json<z.infer<typeof QUEUE>>('/v1/queue', { signal })
        await printListing({ text, entries: value.requests, columns: QUEUE_COLUMNS }, options)
      }),
    )
  defineCancel(
    command
      .command('cancel')
      .description('cancel a download, a count or a search, whether it waits or streams'),
  )
}

function defineCancel(command: Command): void {
  command
    .argument('<request>', 'its id in the queue, or the beginning of it')
    .addOption(contextOption())
    .action((id: string, options: ConnectOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const whole = await queuedId(client, writtenId(id, 'request', 'capfleet queue lists the ids'), signal)
        const path = `/v1/queue/${encodeURIComponent(whole)}`
        const { value } = await client.json<Queued>(path, { method: 'DELETE', signal })
        process.stderr.write(`request ${value.id} of ${value.user}: was ${value.state}\n`)
      }),
    )
}

/**
 * The id of the request that begins like this; any text that cannot be a beginning is left to the gateway. Fails with a
 * ClientFailure.
 */
async function queuedId(client: GatewayClient, id: string, signal: AbortSignal): Promise<string> {
  if (!isBeginning(id)) return id
  const { value } = await client.json<z.infer<typeof QUEUE>>('/v1/queue', { signal })
  const requests = value.requests.map(({ request }) => request)
  const only = idWithBeginning(id, requests, 'requests in the queue')
  if (only !== undefined) return only
  throw new ClientFailure('not-found', `no request in the queue has an id that begins with ${id}`, {
    code: 'unknown-request',
  })
}

function reachableText(reachable: boolean | null): string {
  if (reachable === null) return '?'
  return reachable ? 'yes' : 'no'
}

function clockText(offsetNs: string | null): string {
  return offsetNs === null ? '-' : `${(Number(offsetNs) / 1e6).toFixed(3)} ms`
}
