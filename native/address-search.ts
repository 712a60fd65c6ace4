/** When addresses were seen in stored segments: without reading packets, and counted in a download's packets. */
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

export interface AddressCount {
  readonly packets: bigint
  /** Original lengths. */
  readonly bytes: bigint
  /** Meaningless without packets. */
  readonly firstNs: bigint
  readonly lastNs: bigint
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
  readonly AddressCounter: new (
    ranges: Uint8Array,
  ) => { add(bytes: Uint8Array): void; counts(): BigInt64Array }
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

/** Counts the packets of a PCAP by address. */
export class AddressCounter {
  readonly #native

  /** `addresses` as for searchAddresses(). Each range is a network, or one address. */
  constructor(addresses: Uint8Array) {
    this.#native = new engine.AddressCounter(addresses)
  }

  /** The next bytes of one PCAP with nanoseconds, little-endian, as downloads return it. */
  add(bytes: Uint8Array): void {
    this.#native.add(bytes)
  }

  /** For each range; a packet with several addresses of a range counts once. */
  counts(): readonly AddressCount[] {
    const values = this.#native.counts()
    return Array.from({ length: values.length / 4 }, (_, index) => {
      const [packets = 0n, bytes = 0n, firstNs = 0n, lastNs = 0n] = values.subarray(index * 4)
      return { packets, bytes, firstNs, lastNs }
    })
  }
}
