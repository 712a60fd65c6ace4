/** Merges the spans of all devices of a window in time order, and appends them to the files. */
import { open } from 'node:fs/promises'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import { agreedHeader } from '../../gateway/pcap/common-header.ts'
import { type MergedInput, PcapMerge } from '../../gateway/pcap/merge.ts'
import { PcapInput } from '../../gateway/pcap/pcap-input.ts'
import { formatPcapHeader, type PcapHeader } from '../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import type { DownloadQuery } from '../../shared/query/download/download-query.ts'
import { FileChunks } from './file-chunks.ts'
import { RecordSource } from './record-source.ts'
import type { ResultFiles } from './result-files.ts'

export interface Span {
  readonly device: string
  readonly path: string
  /** Subtracted from its timestamps. */
  readonly alignNs: bigint | undefined
}

export interface JoinRequest {
  readonly order: ExportOrder
  readonly query: DownloadQuery
  /** The spans in the order of the devices; devices without packets are left out. */
  readonly spans: readonly Span[]
  /** What the files already contain of the window, if it fills a hole; these packets precede those of the spans. */
  readonly kept?: PcapInput | undefined
  /** The header of the file; undefined: determined by the spans. */
  readonly header: PcapHeader | undefined
  readonly nameOf: (part: number) => string
  readonly signal: AbortSignal
}

/** The outcome of each span, in order. Fails with mixed-link-type if one file cannot hold them all. */
export async function joinWindow(request: JoinRequest, into: ResultFiles): Promise<readonly MergedInput[]> {
  const { order, query, spans, kept, signal, nameOf } = request
  await using files = new AsyncDisposableStack()
  const inputs: PcapInput[] = kept === undefined ? [] : [kept]
  for (const { device, path, alignNs } of spans) {
    const file = files.use(await open(path, 'r'))
    inputs.push(await PcapInput.open(device, new FileChunks(file), alignNs === undefined ? {} : { alignNs }))
  }
  const agreed = request.header ?? (await agreedHeader(inputs))
  const isMerge = order.plan.devices.length > 1 || kept !== undefined
  const header = { ...agreed, nanoseconds: agreed.nanoseconds && query.timeResolution === 'nsec' }
  const toMicroseconds = !header.nanoseconds
  const merge = new PcapMerge(inputs, {
    signal,
    toMicroseconds,
    ...(isMerge ? mergeLimits(query, { isMerge, otherBytes: PCAP_HEADER_BYTES }) : {}),
  })
  await using source = new RecordSource(merge.chunks(), header)
  await into.append(source, { header: formatPcapHeader(header), nameOf })
  return merge.totals.inputs.slice(kept === undefined ? 0 : 1)
}

/**
 * Limits for several devices; a single device has applied them itself, but may have had more room than a file whose
 * `otherBytes` are not packets.
 */
export function mergeLimits(
  { tsMaxNs, maxPackets, maxBytes, dedupNs, dedupBy }: DownloadQuery,
  { isMerge, otherBytes }: { readonly isMerge: boolean; readonly otherBytes: number },
) {
  const left = maxBytes === undefined ? undefined : maxBytes - BigInt(otherBytes)
  const room = { maxBytes: left !== undefined && left < 0n ? 0n : left }
  return isMerge ? { ...room, tsMaxNs, maxPackets, dedupNs, dedupBy } : room
}
