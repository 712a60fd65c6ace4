import type { Metrics } from '../../../shared/base/metrics.ts'
import { LINES_OUTCOMES, type LinesOutcome } from './lines-outcomes.ts'

const VERIFIED = ['true', 'false'] as const

export class SeenOutcomes {
  readonly #outcomes: ReturnType<Metrics['counter']>
  readonly #addresses: ReturnType<Metrics['counter']>

  /** `running`: number of searches that clients wait for. */
  constructor(metrics: Metrics, running: () => number) {
    this.#outcomes = metrics.counter(
      'seen_total',
      'Searches for addresses by outcome, and whether they read packets (Verify)',
      ['outcome', 'verified'],
      LINES_OUTCOMES.flatMap((outcome) => VERIFIED.map((verified) => ({ outcome, verified }))),
    )
    this.#addresses = metrics.counter(
      'seen_addresses_total',
      'Addresses and networks that were searched for, each once however many devices were asked',
    )
    metrics.figures('seen_running', 'Searches for addresses that clients wait for', [], (set) =>
      set(running()),
    )
  }

  ended(
    outcome: LinesOutcome,
    { verify, addresses }: { readonly verify: boolean; readonly addresses: number },
  ): void {
    this.#outcomes.inc({ outcome, verified: verify ? 'true' : 'false' })
    this.#addresses.inc(addresses)
  }
}
