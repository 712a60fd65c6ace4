import type { Encoding } from '../query/query-values.ts'
import type { DeviceReport } from './download-report.ts'

/** What goes to the client after the head, and how to end it. */
export interface DownloadBody {
  readonly encoding: Encoding
  /**
   * Read once, to its end: only then the body is whole. Throws when it cannot be completed. A chunk
   * is valid until the second next() after it.
   */
  readonly chunks: AsyncIterable<Uint8Array>
  /**
   * Bytes that, put after what was sent so far, leave the format inside an element, so that the cut
   * is seen in the file itself. Empty when it is inside one already.
   */
  cutMark(): Uint8Array
  /** Header names and values for the end of a whole body, beside Capfleet-Complete. */
  trailers(): Readonly<Record<string, string>>
  /** As of now, one entry per device in the order of the plan. */
  report(): readonly DeviceReport[]
}
