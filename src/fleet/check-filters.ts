import { CapfleetError } from '../base/error.ts'
import type { DownloadQuery } from '../query/download-query.ts'
import { formatDownloadQuery } from '../query/format-download-query.ts'
import type { DeviceClient } from './device-client.ts'

export interface CheckOptions {
  /** How long the check may hold the download up; after that it goes on unchecked. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

const FILTER_CODES: ReadonlySet<string> = new Set(['bad-bpf', 'bad-regex'])

/** Whether there is anything that a device would have to compile. */
export function hasFilters({ filterBpf, filterRegex }: DownloadQuery): boolean {
  return filterBpf !== undefined || filterRegex !== undefined
}

/**
 * Has a device compile the query's filters before anybody waits for a stream: an estimate takes
 * none. Fails with bad-bpf or bad-regex, or the signal's reason. Anything else that goes wrong is
 * left to the download, which will meet it too. REQUIRES: hasFilters().
 */
export async function checkFilters(
  query: DownloadQuery,
  client: DeviceClient,
  { timeoutMs, signal }: CheckOptions,
): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  try {
    await client.getJson(`/api/v1/pcap/estimate?${formatDownloadQuery(query)}`, limit)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof CapfleetError && FILTER_CODES.has(error.code)) throw error
  }
}
