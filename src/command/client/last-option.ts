/** `--last 15m`: the time until now. */
import { Option } from 'commander'
import type { QueryPairs } from '../../client/gateway-client.ts'
import { usageFailure } from './usage-failure.ts'

export interface LastOption {
  readonly last?: string
}

export function lastOption(): Option {
  return new Option(
    '--last <time>',
    'the time until now, such as 90s, 15m, 2h or 1d: --begin -<time> --end now',
  )
}

export function withLast(query: QueryPairs, { last }: LastOption): QueryPairs {
  if (last === undefined) return query
  const other = query.find(([name]) => name === 'TSBegin' || name === 'TSEnd')
  if (other !== undefined) throw usageFailure('--last is --begin and --end; give one or the other')
  if (!/^\d+[smhd]$/.test(last))
    throw usageFailure(`--last must be a length of time such as 15m, got ${JSON.stringify(last)}`)
  return [['TSBegin', `-${last}`], ['TSEnd', 'now'], ...query]
}
