import { agreedHeader } from '../pcap/agreed-header.ts'
import { RecordLimiter } from '../pcap/limit-records.ts'
import { mergePcap } from '../pcap/merge.ts'
import { formatPcapHeader, PCAP_HEADER_BYTES, type PcapHeader } from '../pcap/pcap-header.ts'
import { PcapInput } from '../pcap/pcap-input.ts'
import type { DownloadQuery } from '../query/download-query.ts'
import { encodingOf, PARTIAL_ELEMENTS } from '../query/query-values.ts'
import type { DownloadBody } from './download-body.ts'
import { encode } from './encode.ts'
import { mergedTrailers } from './passed-trailers.ts'
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
  const limiter = limiterOf(query, header)
  let bytes = 0
  async function* counted(): AsyncGenerator<Uint8Array> {
    const merged = mergePcap(inputs, { tsMaxNs: query.tsMaxNs, signal })
    const records = limiter?.pass(merged) ?? merged
    for await (const chunk of encode(withHeader(header, records), query.compression)) {
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
      ...mergedTrailers(
        sources.map((source) => source.trailers),
        { nextNs: limiter?.nextNs },
      ),
      'Capfleet-Packets': String(
        limiter?.packets ?? inputs.reduce((sum, { totals }) => sum + totals.packets, 0),
      ),
      'Capfleet-Bytes': String(bytes),
    }),
  }
}

/** A limit holds for the whole, so that it is applied here, whatever the devices have done. */
function limiterOf({ maxBytes, maxPackets }: DownloadQuery, header: PcapHeader): RecordLimiter | undefined {
  if (maxBytes === undefined && maxPackets === undefined) return undefined
  return new RecordLimiter({
    maxPackets,
    maxBytes: maxBytes === undefined ? undefined : maxBytes - BigInt(PCAP_HEADER_BYTES),
    nanoseconds: header.nanoseconds,
  })
}

async function* withHeader(header: PcapHeader, records: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  yield formatPcapHeader(header)
  yield* records
}
