import { RecordBoundary } from '../pcap/record-boundary.ts'
import { PARTIAL_ELEMENTS } from '../query/query-values.ts'
import type { DownloadBody } from './download-body.ts'
import { passedTrailers } from './passed-trailers.ts'
import { reportRelay } from './relay-report.ts'
import type { Source } from './source.ts'

const NOTHING = new Uint8Array(0)

/** The body of a download from one device, byte for byte, for those that look at it on its way. */
export function relayedBody(source: Source): DownloadBody {
  const boundary = source.encoding === 'none' ? new RecordBoundary(`device ${source.device}`) : undefined
  let bytes = 0n
  let complete = false
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for await (const chunk of source.chunks) {
      boundary?.feed([chunk])
      bytes += BigInt(chunk.length)
      // The source reuses its buffer at once, a body's chunks live longer.
      yield Buffer.from(chunk)
    }
    complete = true
  }
  return {
    encoding: source.encoding,
    chunks: chunks(),
    cutMark: () => (boundary?.atBoundary === false ? NOTHING : PARTIAL_ELEMENTS[source.encoding]),
    // Only the device knows how many packets a compressed stream holds.
    trailers: () => ({ ...passedTrailers(source.trailers), 'Capfleet-Bytes': String(bytes) }),
    report: () => [reportRelay({ device: source.device, bytes, trailers: source.trailers, complete })],
  }
}
