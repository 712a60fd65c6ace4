import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { orAborted } from '../../src/shared/base/or-aborted.ts'
import type { CaptureReport } from '../link/capture-report.ts'

export interface FlushState {
  /** A capture with ports is running, or about to. */
  readonly isCapturing: boolean
  /** Full name of the capture; empty between two captures. */
  readonly name: string
  /** Every packet before this time can be downloaded. */
  readonly flushedNs: bigint
}

/** The part of the recorder that is needed here. */
export interface ReportSource {
  captureReport(signal?: AbortSignal): Promise<CaptureReport>
}

/** Low latency for a live viewer, negligible load with four downloads. */
const INTERVAL_MS = 200
const ASK_LIMIT_MS = 5_000
/** A killed recorder is back within a second or two. */
const AWAY_LIMIT_MS = 10_000

/** Notifies waiting downloads how far the capture has been flushed: one question serves all of them. */
export class FlushWatch {
  readonly #recorder: ReportSource
  #asking: Promise<FlushState> | undefined
  #askedMs = Number.NEGATIVE_INFINITY

  constructor(recorder: ReportSource) {
    this.#recorder = recorder
  }

  /**
   * The current state, or one shortly after the previous state was returned. Fails with store-unavailable if the
   * recorder stays unreachable, or with the signal's reason.
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
  // Without ports no packet will ever arrive.
  const isCapturing = isBetween || (name !== '' && ports.length > 0)
  return { isCapturing, name, flushedNs: counts.flushedNs }
}

function away(cause: unknown): CapfleetError {
  return new CapfleetError('store-unavailable', 'the recorder does not report its captures; is it running?', {
    cause,
  })
}
