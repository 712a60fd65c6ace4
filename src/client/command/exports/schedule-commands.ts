/** `capfleet export schedule`: exports that the gateway orders repeatedly. */
import type { Command } from 'commander'
import type { z } from 'zod'
import type { SCHEDULE, SCHEDULES } from '../../../shared/contract/export-answers.ts'
import { SCHEDULE_PARAMETERS } from '../../../shared/query/download/export-options.ts'
import { DOWNLOAD_TABLES } from '../../../shared/query/download/parse-download-query.ts'
import { downloadQuery } from '../../download-target.ts'
import { type ConnectOptions, connect, contextOption } from '../access/connect.ts'
import { addDownloadFlags, type LastOption, packetQuery } from '../common/download-flags.ts'
import {
  type Column,
  type FormatOptions,
  formatOption,
  print,
  printListing,
  shownInstant,
} from '../common/list-output.ts'
import { type GivenOptions, QueryFlags } from '../common/query-flags.ts'
import { runClient } from '../common/run-client.ts'
import { writtenId } from '../common/written-id.ts'
import { placeOrder } from './place-order.ts'

type Schedule = z.infer<typeof SCHEDULE>
type ScheduleOptions = ConnectOptions & FormatOptions & LastOption & GivenOptions

const COLUMNS: readonly Column<Schedule>[] = [
  { title: 'schedule', value: ({ id }) => id },
  { title: 'cron', value: ({ cron }) => cron },
  { title: 'zone', value: ({ cronZone }) => cronZone },
  { title: 'next', value: ({ nextAt }) => nextAt, shown: ({ nextAt }) => shownInstant(nextAt) },
  { title: 'last', value: ({ lastAt }) => lastAt, shown: ({ lastAt }) => shownInstant(lastAt) },
  { title: 'export', value: ({ lastExportId }) => lastExportId },
  { title: 'user', value: ({ user }) => user },
  { title: 'query', value: ({ query }) => query },
  { title: 'error', value: ({ error }) => error?.detail },
]

export function defineSchedule(command: Command): void {
  defineCreate(
    command
      .command('create')
      .description('order an export at each time of --cron; prints the id of the schedule'),
  )
  command
    .command('list')
    .description('list your schedules')
    .addOption(formatOption())
    .addOption(contextOption())
    .action((options: ScheduleOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const { text, value } = await client.json<z.infer<typeof SCHEDULES>>('/v1/schedules', { signal })
        await printListing({ text, entries: value.schedules, columns: COLUMNS }, options)
      }),
    )
  command
    .command('remove')
    .description('remove a schedule; its exports stay')
    .argument('<schedule>', 'its id')
    .addOption(contextOption())
    .action((id: string, options: ConnectOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const written = writtenId(id, 'schedule', 'capfleet export schedule list lists the ids')
        await client.json(`/v1/schedules/${encodeURIComponent(written)}`, { method: 'DELETE', signal })
      }),
    )
}

function defineCreate(command: Command): void {
  const when = new QueryFlags([SCHEDULE_PARAMETERS])
  const what = new QueryFlags(DOWNLOAD_TABLES.export)
  when
    .addTo(command)
    .addOption(contextOption())
    .action((capture: string | undefined, options: ScheduleOptions) =>
      runClient(
        async (signal) => {
          const asked = downloadQuery(capture, await packetQuery(what, options))
          const query = [...when.query(options), ...asked]
          const client = await connect(options)
          const value = await placeOrder<Schedule>(client, '/v1/schedules', { query, signal })
          await print(`${value.id}\n`)
        },
        (name) => when.flagOf(name) ?? what.flagOf(name),
      ),
    )
  addDownloadFlags(command, what)
}
