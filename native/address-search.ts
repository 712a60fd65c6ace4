/** When addresses were seen in stored segments, without reading packets. */
import type { StreamFiles } from './download-options.ts'
import { loadAddon } from './load-addon.ts'
import { untilAborted } from './until-aborted.ts'

/** Times in epoch nanoseconds, both included. */
export interface SeenSpan {
  readonly firstNs: bigint
  readonly lastNs: bigint
}

export interface AddressSpans {
  /** For each range in the order of the packed list: ascending, at least a second apart, at most 256. */
  readonly spans: readonly (readonly SeenSpan[])[]
  /** In the range that was searched. */
  readonly segments: bigint
  /** Of these, segments of which no file was opened: tables of addresses say that none of their packets matches. */
  readonly ruledOutSegments: bigint
  /** Of these, segments whose spans are that of the whole segment, because the sieves of others were enough work. */
  readonly wholeSegments: bigint
}

interface NativeSpans extends Omit<AddressSpans, 'spans'> {
  readonly counts: Uint32Array
  readonly times: BigInt64Array
}

const engine = loadAddon<{
  searchAddresses(
    streams: readonly StreamFiles[],
    beginNs: bigint,
    endNs: bigint,
    ranges: Uint8Array,
  ): { readonly finished: Promise<NativeSpans>; cancel(): void }
}>('capfleet')

/**
 * For each range of `addresses` (as packAddressList() writes them), times that contain every packet of [beginNs, endNs)
 * with an address of the range. A time may have no such packet; verify it by a download. Rejects with aged-out if a
 * segment was removed meanwhile, with store-unavailable, store-corrupt, or the signal's reason.
 */
export async function searchAddresses(options: {
  readonly streams: readonly StreamFiles[]
  readonly beginNs: bigint
  readonly endNs: bigint
  readonly addresses: Uint8Array
  readonly signal: AbortSignal
}): Promise<AddressSpans> {
  const { streams, beginNs, endNs, addresses, signal } = options
  const { counts, times, ...segments } = await untilAborted(
    () => engine.searchAddresses(streams, beginNs, endNs, addresses),
    signal,
  )
  let at = 0
  const next = (): bigint => times[at++] ?? 0n
  const spans = Array.from(counts, (count) =>
    Array.from({ length: count }, () => ({ firstNs: next(), lastNs: next() })),
  )
  return { ...segments, spans }
}
