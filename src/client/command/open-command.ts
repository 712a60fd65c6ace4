/** `capfleet open`: the link of the page, for a browser. */
import { Argument, type Command } from 'commander'
import { DOWNLOAD_PARAMETERS } from '../../shared/query/download/download-parameters.ts'
import { FLEET_PARAMETERS } from '../../shared/query/download/gateway-options.ts'
import { RANGE_PARAMETERS } from '../../shared/query/download/query-range.ts'
import { type ConnectOptions, connect, contextOption } from './access/connect.ts'
import { print } from './common/list-output.ts'
import { type GivenOptions, QueryFlags } from './common/query-flags.ts'
import { runClient } from './common/run-client.ts'

const VIEWS = ['fleet', 'timeline', 'inside', 'queue', 'exports', 'events', 'access'] as const
type View = (typeof VIEWS)[number]

export function defineOpen(command: Command): void {
  const { begin, end } = RANGE_PARAMETERS
  const { filterBpf } = DOWNLOAD_PARAMETERS
  const flags = new QueryFlags([FLEET_PARAMETERS, { begin, end, filterBpf }])
  command.addArgument(new Argument('[view]', 'the view to show').choices(VIEWS))
  flags
    .addTo(command)
    .addOption(contextOption())
    .action((view: View | undefined, options: ConnectOptions & GivenOptions) =>
      runClient(async () => {
        const client = await connect(options)
        const pairs = flags.query(options)
        const query = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
        const shown = view ?? (pairs.length === 0 ? 'fleet' : 'timeline')
        await print(`${client.addressOf('/').href}#/${shown}${query === '' ? '' : `?${query}`}\n`)
      }, flags.flagOf),
    )
}
