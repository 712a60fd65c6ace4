import type { Metrics } from '../../../shared/base/metrics.ts'
import { LINES_OUTCOMES, type LinesOutcome } from './lines-outcomes.ts'

export class CountOutcomes {
  readonly #outcomes: ReturnType<Metrics['counter']>

  /** `running`: number of counts that clients wait for. */
  constructor(metrics: Metrics, running: () => number) {
    this.#outcomes = metrics.counter(
      'counts_total',
      'Counts of what a download would deliver, by outcome',
      ['outcome'],
      LINES_OUTCOMES.map((outcome) => ({ outcome })),
    )
    metrics.figures(
      'counts_running',
      'Counts of what a download would deliver that clients wait for',
      [],
      (set) => set(running()),
    )
  }

  ended(outcome: LinesOutcome): void {
    this.#outcomes.inc({ outcome })
  }
}
