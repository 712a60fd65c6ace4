import type { Metrics } from '../../../shared/base/metrics.ts'

/**
 * How a search for addresses ended: complete; incomplete, because a device did not answer or not completely; cut, for
 * example because the caller lost access; left by the client; or answered with an error.
 */
const OUTCOMES = ['complete', 'incomplete', 'cut', 'client-gone', 'refused'] as const
export type SeenOutcome = (typeof OUTCOMES)[number]
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
      OUTCOMES.flatMap((outcome) => VERIFIED.map((verified) => ({ outcome, verified }))),
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
    outcome: SeenOutcome,
    { verify, addresses }: { readonly verify: boolean; readonly addresses: number },
  ): void {
    this.#outcomes.inc({ outcome, verified: verify ? 'true' : 'false' })
    this.#addresses.inc(addresses)
  }
}
