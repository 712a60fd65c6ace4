import type { DownloadTotals } from '../../native/addon.ts'
import type { Metrics } from '../../src/shared/base/metrics.ts'
import type { StreamLimit } from './stream-limit.ts'

export interface EndedDownload {
  readonly kind: string
  readonly outcome: string
  readonly totals: DownloadTotals
}

export interface EndedCount {
  readonly outcome: 'complete' | 'incomplete' | 'client-gone' | 'cut' | 'failed'
  readonly totals: DownloadTotals
}

/** Counts downloads; gauges show the slots at the time of the scrape. */
export class DownloadMetrics {
  readonly #downloads
  readonly #counts
  readonly #bytes
  readonly #packets
  readonly #passedBlocks
  readonly #ruledOutSegments
  readonly #corruptBlocks
  #failureCount = 0
  #corruptBlockCount = 0n

  constructor(metrics: Metrics, slots: StreamLimit) {
    this.#downloads = metrics.counter('store_downloads_total', 'Ended downloads', ['kind', 'outcome'])
    this.#counts = metrics.counter('store_counts_total', 'Ended counts of what a download would deliver', [
      'outcome',
    ])
    this.#bytes = metrics.counter('store_download_bytes_total', 'Bytes of download bodies')
    this.#packets = metrics.counter('store_download_packets_total', 'Packets delivered')
    this.#passedBlocks = metrics.counter(
      'passed_blocks_total',
      'Stored blocks that downloads skipped because none of their packets has an address that the filter requires',
    )
    this.#ruledOutSegments = metrics.counter(
      'ruled_out_segments_total',
      'Stored segments of which downloads opened no file, because none of their packets has an address that the filter requires',
    )
    this.#corruptBlocks = metrics.counter(
      'corrupt_blocks_total',
      'Stored blocks that downloads left out because they are damaged',
    )
    metrics.gauge('download_slots_used', 'Downloads running now', [], (gauge) =>
      gauge.set(slots.readers.size),
    )
    metrics.gauge('download_slots_waiting', 'Requests waiting for a slot', [], (gauge) =>
      gauge.set(slots.waiting),
    )
  }

  /** Number of downloads cut because of the store or the engine, since the program started. */
  get failures(): number {
    return this.#failureCount
  }

  /** Number of damaged blocks that downloads left out, since the program started. */
  get corruptBlocks(): bigint {
    return this.#corruptBlockCount
  }

  ended({ kind, outcome, totals }: EndedDownload): void {
    this.#downloads.inc({ kind, outcome })
    this.#bytes.inc(Number(totals.outputBytes))
    this.#packets.inc(Number(totals.packets - totals.skippedPackets))
    this.#haveRead(totals)
    if (outcome === 'failed') this.#failureCount += 1
  }
  /** Its packets were not sent. */
  counted({ outcome, totals }: EndedCount): void {
    this.#counts.inc({ outcome })
    this.#haveRead(totals)
  }

  #haveRead(totals: DownloadTotals): void {
    this.#passedBlocks.inc(Number(totals.passedBlocks))
    this.#ruledOutSegments.inc(Number(totals.ruledOutSegments))
    this.#corruptBlocks.inc(Number(totals.corruptBlocks))
    this.#corruptBlockCount += totals.corruptBlocks
  }
}
