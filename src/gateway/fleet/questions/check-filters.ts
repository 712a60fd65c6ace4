import { CapfleetError } from '../../../shared/base/error.ts'
import { JoinedSignal } from '../../../shared/base/joined-signal.ts'
import type { DownloadQuery } from '../../../shared/query/download/download-query.ts'
import { formatDownloadQuery } from '../../../shared/query/download/format-download-query.ts'
import { ANSWER_BYTES_MAX, type DeviceClient } from '../../device/device-client.ts'

export interface CheckOptions {
  /** Label of the caller who requested the download. */
  readonly caller: string
  /** How long the check may delay the download; after that it continues unchecked. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** A device's answers that count: the caller made a mistake, or its compilers are busy. */
const CHECK_CODES: ReadonlySet<string> = new Set(['bad-bpf', 'bad-regex', 'bad-parameter', 'compiler-busy'])

/**
 * Whether there is anything that only a device can check: filters to compile, or a word of TSMode that may be its own.
 */
export function needsCheck({ filterBpf, filterRegex, timeSourceWord }: DownloadQuery): boolean {
  return filterBpf !== undefined || filterRegex !== undefined || timeSourceWord !== undefined
}

/**
 * Has a device compile the query's filters before the download waits for a stream: an estimate takes none. Fails with
 * bad-bpf, bad-regex, bad-parameter or compiler-busy, or the signal's reason. Any other failure is left to the
 * download, which will meet it too; so is a slow check, because a download has more time to begin. REQUIRES:
 * needsCheck().
 */
export async function checkFilters(
  query: DownloadQuery,
  client: DeviceClient,
  { caller, timeoutMs, signal }: CheckOptions,
): Promise<void> {
  using limit = new JoinedSignal([signal], timeoutMs)
  try {
    // A position in an error must refer to the caller's own filter.
    const target = `/api/v1/pcap/estimate?${formatDownloadQuery({ ...query, forcedFilters: [] })}`
    await client.getText(target, { bytesMax: ANSWER_BYTES_MAX.estimate, signal: limit.signal, caller })
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof CapfleetError && CHECK_CODES.has(error.code)) throw error
  }
}
