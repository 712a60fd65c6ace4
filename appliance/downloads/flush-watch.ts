import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { orAborted } from '../../src/shared/base/or-aborted.ts'
import type { CaptureReport } from '../link/capture-report.ts'

export interface FlushState {
  /** A capture with ports runs, or is about to. */
  readonly isCapturing: boolean
  /** Full name of the capture; empty between two of them. */
  readonly name: string
  /** Every packet before this time can be downloaded. */
  readonly flushedNs: bigint
}

/** The recorder, as far as it is needed here. */
export interface ReportSource {
  captureReport(signal?: AbortSignal): Promise<CaptureReport>
}

/** Seen early enough by who watches, and no load with four downloads. */
const INTERVAL_MS = 200
const ASK_LIMIT_MS = 5_000
/** A recorder that was killed is back within a second or two. */
const AWAY_LIMIT_MS = 10_000

/** Tells those who wait for packets how far the capture is flushed: one question serves them all. */
export class FlushWatch {
  readonly #recorder: ReportSource
  #asking: Promise<FlushState> | undefined
  #askedMs = Number.NEGATIVE_INFINITY

  constructor(recorder: ReportSource) {
    this.#recorder = recorder
  }

  /**
   * The state now, or a moment after the state before was given. Fails with store-unavailable when
   * the recorder stays away, or with the signal's reason.
   */
  async next(signal: AbortSignal): Promise<FlushState> {
    signal.throwIfAborted()
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return await orAborted(this.#asking, signal)
  }

  async #ask(): Promise<FlushState> {
    const giveUpMs = performance.now() + AWAY_LIMIT_MS
    for (;;) {
      const restMs = this.#askedMs + INTERVAL_MS - performance.now()
      if (restMs > 0) await delay(restMs)
      this.#askedMs = performance.now()
      try {
        return stateOf(await this.#recorder.captureReport(AbortSignal.timeout(ASK_LIMIT_MS)))
      } catch (cause) {
        if (performance.now() > giveUpMs) throw away(cause)
      }
    }
  }
}

function stateOf({ name, state, ports, counts }: CaptureReport): FlushState {
  const isBetween = state === 'rolling' || state === 'starting'
  // Without ports nothing will ever come.
  const isCapturing = isBetween || (name !== '' && ports.length > 0)
  return { isCapturing, name, flushedNs: counts.flushedNs }
}

function away(cause: unknown): CapfleetError {
  return new CapfleetError('store-unavailable', 'the recorder does not report its captures; is it running?', {
    cause,
  })
}
