/** The flags of a download: those of its parameters, and `--last 15m` for the time until now. */

import { type Command, Option } from 'commander'
import { usageFailure } from '../../client-failure.ts'
import type { QueryPairs } from '../../gateway-client.ts'
import type { QueryFlags } from './query-flags.ts'

export interface LastOption {
  readonly last?: string
}

/** Adds the flags that select packets, after the flags that the command has. */
export function addDownloadFlags(command: Command, flags: QueryFlags): void {
  command.argument('[capture]', 'the capture; without it: a time range of the selected devices')
  command.optionsGroup('Which packets:').addOption(lastOption())
  flags.addTo(command)
}

function lastOption(): Option {
  return new Option(
    '--last <time>',
    'the time until now, such as 90s, 15m, 2h or 1d: --begin -<time> --end now',
  )
}

export function withLast(query: QueryPairs, { last }: LastOption): QueryPairs {
  if (last === undefined) return query
  const other = query.find(([name]) => name === 'TSBegin' || name === 'TSEnd')
  if (other !== undefined) throw usageFailure('--last replaces --begin and --end; give one or the other')
  if (!/^\d+[smhd]$/.test(last))
    throw usageFailure(`--last must be a length of time such as 15m, got ${JSON.stringify(last)}`)
  return [['TSBegin', `-${last}`], ['TSEnd', 'now'], ...query]
}
