import { deviceProtocol } from '../fleet/device-failure.ts'
import { RecordBoundary } from '../pcap/record-boundary.ts'
import { PARTIAL_ELEMENTS } from '../query/query-values.ts'
import type { DownloadBody } from './download-body.ts'
import { passedTrailers } from './passed-trailers.ts'
import type { Source } from './source.ts'

const NOTHING = new Uint8Array(0)

/** The body of a download from one device: its bytes as they are. */
export function relayBody(source: Source): DownloadBody {
  const boundary = source.encoding === 'none' ? new RecordBoundary(`device ${source.device}`) : undefined
  let bytes = 0
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for await (const chunk of source.chunks) {
      boundary?.feed(chunk)
      bytes += chunk.length
      yield chunk
    }
    if (boundary?.atBoundary === false)
      throw deviceProtocol(source.device, 'ended its stream inside a record')
  }
  return {
    encoding: source.encoding,
    chunks: chunks(),
    cutMark: () => (boundary?.atBoundary === false ? NOTHING : PARTIAL_ELEMENTS[source.encoding]),
    // Only the device knows how many packets a compressed stream holds.
    trailers: () => ({ ...passedTrailers(source.trailers), 'Capfleet-Bytes': String(bytes) }),
  }
}
