/** The audit: who did what. */
import type { Command } from 'commander'
import type { z } from 'zod'
import { listText } from '../../../shared/base/list-text.ts'
import type { AUDIT_PAGE } from '../../../shared/contract/audit-answers.ts'
import { AUDIT_PARAMETERS } from '../../../shared/contract/audit-parameters.ts'
import {
  type Column,
  type FormatOptions,
  formatOption,
  printListing,
  shownInstant,
} from '../common/list-output.ts'
import { type GivenOptions, QueryFlags } from '../common/query-flags.ts'
import { runClient } from '../common/run-client.ts'
import { type ConnectOptions, connect, contextOption } from './connect.ts'

type Line = z.infer<typeof AUDIT_PAGE>['entries'][number]

const COLUMNS: readonly Column<Line>[] = [
  { title: 'at', value: ({ at }) => at, shown: ({ at }) => shownInstant(at) },
  { title: 'event', value: ({ event }) => event },
  { title: 'user', value: ({ user }) => user },
  { title: 'address', value: ({ address }) => address },
  {
    title: 'devices',
    value: ({ devices }) => (Array.isArray(devices) ? devices.join(' ') : undefined),
    shown: ({ devices }) => (Array.isArray(devices) ? listText(devices.map(String), ' ') : '-'),
  },
  { title: 'capture', value: ({ capture }) => capture },
  { title: 'path', value: ({ path }) => path },
  { title: 'status', value: ({ status }) => status },
  { title: 'request', value: ({ requestId }) => requestId },
]

export function defineAudit(command: Command): void {
  const flags = new QueryFlags([AUDIT_PARAMETERS])
  const list = command.command('list').description('list lines of the audit, the newest first')
  flags
    .addTo(list)
    .addOption(formatOption())
    .addOption(contextOption())
    .action((options: ConnectOptions & FormatOptions & GivenOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const query = flags.query(options)
        const { text, value } = await client.json<z.infer<typeof AUDIT_PAGE>>('/v1/audit', { query, signal })
        await printListing({ text, entries: value.entries, columns: COLUMNS }, options)
        if (value.next !== null) process.stderr.write(`capfleet: there are more; --after ${value.next}\n`)
      }, flags.flagOf),
    )
}
