/** Exact counts for a search for addresses: reads the packets of the times that the search has found. */
import { Download } from '../../native/addon.ts'
import { type AddressCount, AddressCounter } from '../../native/address-counter.ts'
import type { StreamFiles } from '../../native/download-options.ts'
import type { SearchedStreams, SearchRange } from './seen-streams.ts'

/** Of each packet this is read: more than the headers in which addresses are found. */
const HEADER_BYTES = 128

export interface CountRequest {
  /** Ranges of addresses as questions, and the same as one set, for the engine. */
  readonly questions: Uint8Array
  readonly addresses: Uint8Array
  /** FilterBPF, compiled for each link type; undefined: every packet. */
  readonly programs: ReadonlyMap<number, Uint8Array> | undefined
  /** As in DownloadOptions. */
  readonly readsAllBlocks: boolean
  readonly signal: AbortSignal
}

export interface CountedPart {
  readonly counts: readonly AddressCount[]
  readonly readBytes: bigint
  readonly corruptBlocks: bigint
}

/** Counts the packets of one part. Fails like a download, with aged-out if a segment was removed meanwhile. */
export async function countPart(
  { byLinkType }: SearchedStreams,
  part: SearchRange,
  request: CountRequest,
): Promise<CountedPart> {
  const counted: CountedPart[] = []
  for (const [linkType, streams] of byLinkType)
    counted.push(await countStreams(streams, linkType, part, request))
  return counted.reduce(sumOf, { counts: [], readBytes: 0n, corruptBlocks: 0n })
}

async function countStreams(
  streams: readonly StreamFiles[],
  linkType: number,
  { beginNs, endNs }: SearchRange,
  { questions, addresses, programs, readsAllBlocks, signal }: CountRequest,
): Promise<CountedPart> {
  const counter = new AddressCounter(questions, 'capfleet')
  await using download = await Download.open(
    {
      streams,
      beginNs,
      endNs,
      addresses,
      filter: programs?.get(linkType),
      readsAllBlocks,
      sliceBytes: HEADER_BYTES,
      timeResolution: 'nsec',
      compression: 'none',
      emptyLinkType: linkType,
    },
    signal,
  )
  for (let chunk = await download.next(); chunk !== undefined; chunk = await download.next()) {
    counter.add(chunk.bytes)
    chunk.release()
    signal.throwIfAborted()
  }
  const { readBytes, corruptBlocks } = download.totals()
  return { counts: counter.counts(), readBytes, corruptBlocks }
}

function sumOf(a: CountedPart, b: CountedPart): CountedPart {
  return {
    counts: sumOfCounts(a.counts, b.counts),
    readBytes: a.readBytes + b.readBytes,
    corruptBlocks: a.corruptBlocks + b.corruptBlocks,
  }
}

/** Question by question; an empty list counts nothing. */
export function sumOfCounts(a: readonly AddressCount[], b: readonly AddressCount[]): readonly AddressCount[] {
  if (a.length === 0) return b
  return a.map((one, index) => {
    const other = b[index]
    if (other === undefined || other.packets === 0n) return one
    if (one.packets === 0n) return other
    return {
      packets: one.packets + other.packets,
      bytes: one.bytes + other.bytes,
      firstNs: one.firstNs < other.firstNs ? one.firstNs : other.firstNs,
      lastNs: one.lastNs > other.lastNs ? one.lastNs : other.lastNs,
    }
  })
}
