import type { StreamSummary } from '../../../native/import-capture-files.ts'
import type { EventSink } from '../../events/event-log.ts'
import type { CaptureCounts } from '../../link/capture-report.ts'
import type { Drops } from '../../store/segment-table.ts'
import type { CaptureDriver } from './capture-driver.ts'
import { CaptureRates } from './capture-rates.ts'
import { CaptureTally } from './capture-tally.ts'
import { CaptureWatch } from './capture-watch.ts'
import type { RecordedCapture } from './recorded-capture.ts'

/** A driver's result for a capture that gets no more packets. */
export interface EndedRecording {
  readonly capture: RecordedCapture
  readonly streams: readonly StreamSummary[]
  readonly drops: Drops
}

/** Segments that end within this time share one write to the log. */
const SEGMENTS_EVERY_MS = 1_000

/** A running driver, the capture that its packets are written to, and its figures. One call at a time. */
export class Recording {
  readonly #driver: CaptureDriver
  readonly #rates = new CaptureRates()
  readonly #watch: CaptureWatch
  #capture: RecordedCapture
  #tally: CaptureTally
  #askedMs = Number.NEGATIVE_INFINITY

  private constructor(driver: CaptureDriver, capture: RecordedCapture, events: EventSink) {
    this.#driver = driver
    this.#watch = new CaptureWatch(events)
    this.#capture = capture
    this.#tally = CaptureTally.start(capture.totals, capture.earlierDrops)
  }

  /** Fails like the driver's start. */
  static async begin(driver: CaptureDriver, capture: RecordedCapture, events: EventSink): Promise<Recording> {
    await driver.start(capture.target)
    return new Recording(driver, capture, events)
  }

  get capture(): RecordedCapture {
    return this.#capture
  }

  get counts(): CaptureCounts {
    return this.#tally.countsOf(this.#driver.counts(), this.#rates.perSecond)
  }

  /** The current problem with the disk or the ports; "" = none. */
  get problem(): string {
    return this.#watch.problem
  }

  /** Updates rates, and reports events of drops, the ports and the disk. May run during another call. */
  observe(monotonicMs: number): void {
    const counts = this.#driver.counts()
    this.#rates.sample(counts, monotonicMs)
    this.#watch.observe(this.#capture.name, counts, monotonicMs)
  }

  /** Adds finished segments to the log, about every second. Returns whether there were any. */
  async takeSegments(monotonicMs: number): Promise<boolean> {
    if (monotonicMs - this.#askedMs < SEGMENTS_EVERY_MS) return false
    const drops = this.#tally.dropsOf(this.#driver.counts())
    const isNew = await this.#capture.add(this.#driver.takeFinished(), drops)
    this.#askedMs = monotonicMs
    return isNew
  }

  /** Packets are written to `next` from one moment on. On failure everything stays as it was. */
  async rollTo(next: RecordedCapture): Promise<EndedRecording> {
    const ended = this.#endedWith(await this.#driver.roll(next.target))
    ended.capture.note(ended.streams)
    this.#tally = this.#tally.afterRoll(ended.capture.totals, this.#driver.counts())
    this.#capture = next
    return ended
  }

  /** Ends it; may be retried. */
  async end(): Promise<EndedRecording> {
    return this.#endedWith(await this.#driver.stop())
  }

  #endedWith(streams: readonly StreamSummary[]): EndedRecording {
    return { capture: this.#capture, streams, drops: this.#tally.dropsOf(this.#driver.counts()) }
  }
}
