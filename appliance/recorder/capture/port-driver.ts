import type { StreamSummary } from '../../../native/import-capture-files.ts'
import { LiveCapture, type LiveCaptureOptions, type LiveCounts } from '../../../native/live-capture.ts'
import { type CaptureDriver, type CaptureTarget, noPortDriver } from './capture-driver.ts'

/** The part of LiveCapture that is needed. */
export type CaptureEngine = Pick<LiveCapture, 'start' | 'roll' | 'stop' | 'takeFinished' | 'counts' | 'close'>

export interface PortDriverOptions extends LiveCaptureOptions {
  /** Default: the engine. */
  readonly open?: (options: LiveCaptureOptions) => Promise<CaptureEngine>
}

/**
 * The capture ports of this machine. They are opened by a start and closed by a stop, so that a device that captures
 * nothing uses no memory for rings and leaves its interfaces alone.
 */
export class PortDriver implements CaptureDriver {
  readonly ports: readonly number[]
  readonly #options: PortDriverOptions
  #engine: CaptureEngine | undefined
  /** Segments returned at the end of the capture that was stopped last. */
  #streams: readonly StreamSummary[] = []
  #counts: LiveCounts = noPortDriver.counts()

  constructor(options: PortDriverOptions) {
    this.#options = options
    this.ports = options.ports.map(({ port }) => port)
  }

  async start({ folder, lastNumbers }: CaptureTarget): Promise<void> {
    const { open = LiveCapture.open, ...options } = this.#options
    const engine = await open(options)
    try {
      await engine.start(folder, lastNumbers)
    } catch (error) {
      engine.close()
      throw error
    }
    this.#engine = engine
  }

  async roll({ folder }: CaptureTarget): Promise<readonly StreamSummary[]> {
    if (this.#engine === undefined) throw new Error('roll() without a running capture')
    return await this.#engine.roll(folder)
  }

  async stop(): Promise<readonly StreamSummary[]> {
    const engine = this.#engine
    if (engine === undefined) return this.#streams
    this.#streams = await engine.stop()
    this.#counts = engine.counts()
    engine.close()
    this.#engine = undefined
    return this.#streams
  }

  takeFinished(): readonly StreamSummary[] {
    return this.#engine === undefined ? this.#streams : this.#engine.takeFinished()
  }

  counts(): LiveCounts {
    return this.#engine?.counts() ?? this.#counts
  }
}
