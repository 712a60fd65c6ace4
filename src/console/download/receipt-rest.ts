/** What of a download did not come, and how it is asked for. */
import type { Schemas } from '../base/ask-gateway.ts'
import type { Changes } from '../base/page-url.ts'
import { downloadValues } from './parameter-groups.ts'

type Receipt = Pick<Schemas['Receipt'], 'status' | 'path' | 'query' | 'nextNs'>

/** Whether the gateway goes on with it; nobody can in the middle of what was compressed. */
export function isResumable({ status, query }: Receipt): boolean {
  const compression = new URLSearchParams(query).get('Compression') ?? 'none'
  return (status === 'failed' || status === 'client-gone') && compression === 'none'
}

/** The selection of what a limit has left out; undefined: no limit has, or it was no selection of the page. */
export function restOf({ status, path, query, nextNs }: Receipt): Changes | undefined {
  if (status !== 'truncated' || nextNs === null || path !== '/api/v1/pcap/timerange') return undefined
  return { ...downloadValues(new URLSearchParams(query)), TSBegin: nextNs }
}
