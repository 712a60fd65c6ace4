import { agreedHeader } from '../pcap/agreed-header.ts'
import { mergePcap } from '../pcap/merge.ts'
import { formatPcapHeader, type PcapHeader } from '../pcap/pcap-header.ts'
import { PcapInput } from '../pcap/pcap-input.ts'
import type { DownloadQuery } from '../query/download-query.ts'
import { encodingOf, PARTIAL_ELEMENTS } from '../query/query-values.ts'
import type { DownloadBody } from './download-body.ts'
import { encode } from './encode.ts'
import type { Source } from './source.ts'

/**
 * The body of a download from several devices: their packets in the order of time, compressed here.
 * Fails with mixed-link-type when one PCAP cannot hold them, device-protocol when a stream is no PCAP.
 */
export async function mergedBody(
  sources: readonly Source[],
  query: DownloadQuery,
  signal: AbortSignal,
): Promise<DownloadBody> {
  const inputs = await Promise.all(sources.map((source) => PcapInput.open(source.device, source.chunks)))
  const header = await agreedHeader(inputs)
  const encoding = encodingOf(query.compression)
  let bytes = 0
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of encode(records(header, inputs, query, signal), query.compression)) {
      bytes += chunk.length
      yield chunk
    }
  }
  return {
    encoding,
    chunks: counted(),
    // Merged chunks are whole records, and what a compressor holds back is inside an element.
    cutMark: () => PARTIAL_ELEMENTS[encoding],
    trailers: () => ({
      'Capfleet-Packets': String(inputs.reduce((sum, { totals }) => sum + totals.packets, 0)),
      'Capfleet-Bytes': String(bytes),
    }),
  }
}

async function* records(
  header: PcapHeader,
  inputs: readonly PcapInput[],
  query: DownloadQuery,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  yield formatPcapHeader(header)
  yield* mergePcap(inputs, { tsMaxNs: query.tsMaxNs, signal })
}
