/** `capfleet export`: downloads that the gateway runs as jobs. */
import type { Command } from 'commander'
import type { z } from 'zod'
import { bytesText } from '../../../shared/base/amounts.ts'
import type { EXPORTS } from '../../../shared/contract/export-answers.ts'
import { EXPORT_LIST_PARAMETERS } from '../../../shared/query/download/export-options.ts'
import { DOWNLOAD_TABLES } from '../../../shared/query/download/parse-download-query.ts'
import { usageFailure } from '../../client-failure.ts'
import { downloadQuery } from '../../download-target.ts'
import type { Export } from '../../followed-export.ts'
import { type ConnectOptions, connect, contextOption } from '../access/connect.ts'
import { addAlertFlags, refuseAlertFlags } from '../alerts/alert-flags.ts'
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
import { type AlertExportOptions, exportAlerts } from './export-alerts.ts'
import { defineExportGet } from './export-get-command.ts'
import { exportId } from './export-id.ts'
import { watchToEnd } from './export-watch.ts'
import { placeOrder } from './place-order.ts'
import { defineSchedule } from './schedule-commands.ts'

type ExportOptions = ConnectOptions & FormatOptions & LastOption & GivenOptions
type CreateOptions = ExportOptions & AlertExportOptions

const COLUMNS: readonly Column<Export>[] = [
  { title: 'export', value: ({ id }) => id },
  { title: 'state', value: ({ state }) => state },
  { title: 'done', value: ({ progress }) => progress.ratio, shown: (one) => shareText(one.progress.ratio) },
  {
    title: 'written',
    value: ({ progress }) => progress.writtenBytes,
    shown: (one) => bytesText(one.progress.writtenBytes),
  },
  { title: 'files', value: ({ files }) => files.length },
  {
    title: 'created',
    value: ({ createdAt }) => createdAt,
    shown: ({ createdAt }) => shownInstant(createdAt),
  },
  {
    title: 'expires',
    value: ({ expiresAt }) => expiresAt,
    shown: ({ expiresAt }) => shownInstant(expiresAt),
  },
  { title: 'user', value: ({ user }) => user },
  { title: 'reason', value: ({ reason }) => reason },
]

const FURTHER_COLUMNS: readonly Column<Export>[] = [
  { title: 'query', value: ({ query }) => query },
  {
    title: 'devices',
    value: ({ devices }) => devices.map(({ device, state }) => `${device}=${state}`).join(' '),
  },
  { title: 'names', value: ({ files }) => files.map(({ name }) => name).join(' ') },
  { title: 'error', value: ({ error }) => error?.detail },
]

export function defineExport(command: Command): void {
  defineCreate(command.command('create').description('order an export; prints its id'))
  defineList(command.command('list').description('list your exports, the newest first'))
  defineShow(command.command('show').description('show all details of an export'))
  command
    .command('watch')
    .description('follow an export until it ends')
    .argument('<export>', 'its id')
    .addOption(contextOption())
    .action((id: string, options: ConnectOptions) =>
      runClient(async (signal) => watchToEnd(await connect(options), exportId(id), signal)),
    )
  defineExportGet(
    command.command('get').description('download the files of an export that has ended, and its manifest'),
  )
  defineChange(
    command.command('fill').description('fetch what is missing from a partial export'),
    'POST',
    '/fill',
  )
  defineChange(
    command.command('cancel').description('cancel a running export; remove the files of one that has ended'),
    'DELETE',
    '',
  )
  defineSchedule(
    command.command('schedule').description('manage exports that run on a schedule: create, list, remove'),
  )
}

function defineCreate(command: Command): void {
  const flags = new QueryFlags(DOWNLOAD_TABLES.export)
  command
    .option('--watch', 'follow it until it ends')
    .addOption(contextOption())
    .action((capture: string | undefined, options: CreateOptions) =>
      runClient(async (signal) => {
        const asked = await packetQuery(flags, options)
        if (options.alert !== undefined)
          return await exportAlerts({ ...options, alert: options.alert }, { capture, query: asked, signal })
        refuseAlertFlags(options)
        if (options.force === true) throw usageFailure('--force belongs to --alert')
        const query = downloadQuery(capture, asked)
        const client = await connect(options)
        const value = await placeOrder<Export>(client, '/v1/exports', { query, signal })
        await print(`${value.id}\n`)
        if (options.watch === true) await watchToEnd(client, value.id, signal)
      }, flags.flagOf),
    )
  addDownloadFlags(command, flags)
  addAlertFlags(command, 'export')
  command.option('--force', 'order again what was ordered before')
}

function defineList(command: Command): void {
  const flags = new QueryFlags([EXPORT_LIST_PARAMETERS])
  flags
    .addTo(command)
    .addOption(formatOption())
    .addOption(contextOption())
    .action((options: ExportOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const query = flags.query(options)
        const { text, value } = await client.json<z.infer<typeof EXPORTS>>('/v1/exports', { query, signal })
        await printListing({ text, entries: value.exports, columns: COLUMNS }, options)
        if (value.next !== null) process.stderr.write(`capfleet: there are more; --after ${value.next}\n`)
        if (value.workers === 0) process.stderr.write('capfleet: no worker is running to process exports\n')
      }, flags.flagOf),
    )
}

function defineShow(command: Command): void {
  command
    .argument('<export>', 'its id')
    .addOption(formatOption())
    .addOption(contextOption())
    .action((id: string, options: ExportOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const { text, value } = await client.json<Export>(exportPath(id), { signal })
        await printEntry({ text, entries: [value], columns: [...COLUMNS, ...FURTHER_COLUMNS] }, options)
      }),
    )
}

function defineChange(command: Command, method: 'POST' | 'DELETE', place: string): void {
  command
    .argument('<export>', 'its id')
    .addOption(contextOption())
    .action((id: string, options: ConnectOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const { value } = await client.json<Export>(`${exportPath(id)}${place}`, { method, signal })
        process.stderr.write(
          `export ${value.id}: ${method === 'DELETE' ? `was ${value.state}` : value.state}\n`,
        )
      }),
    )
}

function exportPath(id: string): string {
  return `/v1/exports/${encodeURIComponent(exportId(id))}`
}

function shareText(ratio: number | null): string {
  return ratio === null ? '-' : `${Math.floor(ratio * 100)}%`
}
