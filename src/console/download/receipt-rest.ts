/** The missing part of a download, and how to request it. */
import type { Schemas } from '../base/ask-gateway.ts'
import type { Changes } from '../base/page-url.ts'
import { downloadValues } from './parameter-groups.ts'

type Receipt = Pick<Schemas['Receipt'], 'status' | 'path' | 'query' | 'nextNs'>

/** Whether the gateway can continue it; compressed data cannot be continued in the middle. */
export function isResumable({ status, query }: Receipt): boolean {
  const compression = new URLSearchParams(query).get('Compression') ?? 'none'
  return (status === 'failed' || status === 'client-gone') && compression === 'none'
}

/** The selection of what a limit has cut off; undefined if no limit has, or it was not a selection of the page. */
export function restOf({ status, path, query, nextNs }: Receipt): Changes | undefined {
  if (status !== 'truncated' || nextNs === null || path !== '/api/v1/pcap/timerange') return undefined
  return { ...downloadValues(new URLSearchParams(query)), TSBegin: nextNs }
}
