/** Attacks one after another, each on a stand of its kind. */
import type { Scale } from './attack.ts'
import { AttackMeter, type Quiet, type Timings } from './attack-meter.ts'
import type { AttackResult } from './attack-report.ts'
import { ATTACKS } from './attacks.ts'
import type { Stand, Target } from './stand.ts'
import { Stands } from './stands.ts'
import { judge, LIMITS, LIMITS_OF_SMALL_FORM, type Limits } from './verdict.ts'

/** How attacks are run, and their limits. */
export interface AttackForm {
  readonly scale: Scale
  readonly timings: Timings
  readonly limits: Limits
}

export const FULL_FORM: AttackForm = {
  scale: 'full',
  timings: { attackMs: 10_000, afterMs: 10_000, quietMs: 10_000, priceMs: 5_000, restMs: 60_000 },
  limits: LIMITS,
}

/** The form for `npm test`. */
export const SMALL_FORM: AttackForm = {
  scale: 'small',
  timings: { attackMs: 400, afterMs: 200, quietMs: 600, priceMs: 300, restMs: 20_000 },
  limits: LIMITS_OF_SMALL_FORM,
}

export class AttackRun implements AsyncDisposable {
  readonly #owned: AsyncDisposableStack
  readonly #meter: AttackMeter
  readonly #stands: Stands
  readonly #limits: Limits
  /** The quiet level of each stand, by process: a stand that was restarted is a new one. */
  readonly #quiet = new Map<number, Quiet>()
  readonly #onQuiet: (stand: Stand, quiet: Quiet) => void

  private constructor(
    owned: AsyncDisposableStack,
    parts: {
      readonly meter: AttackMeter
      readonly stands: Stands
      readonly limits: Limits
      readonly onQuiet: (stand: Stand, quiet: Quiet) => void
    },
  ) {
    this.#owned = owned
    this.#meter = parts.meter
    this.#stands = parts.stands
    this.#limits = parts.limits
    this.#onQuiet = parts.onQuiet
  }

  /** `onQuiet` is called for each stand before its first attack. */
  static async start(
    form: AttackForm,
    onQuiet: (stand: Stand, quiet: Quiet) => void = () => undefined,
  ): Promise<AttackRun> {
    await using opening = new AsyncDisposableStack()
    const meter = opening.use(await AttackMeter.start(form))
    const stands = opening.use(await Stands.open({ scale: form.scale, deviceUrl: meter.deviceUrl }))
    return new AttackRun(opening.move(), { meter, stands, limits: form.limits, onQuiet })
  }

  async attack(name: string, target: Target): Promise<AttackResult> {
    const stand = await this.#stands.stand(target, ATTACKS[name]?.stand ?? 'plain')
    const quiet = this.#quiet.get(stand.attackedPid) ?? (await this.#meter.quiet(stand))
    if (!this.#quiet.has(stand.attackedPid)) this.#onQuiet(stand, quiet)
    this.#quiet.set(stand.attackedPid, quiet)
    const stated = ATTACKS[name]?.stated
    const measured = await this.#meter.attack(name, stand, quiet)
    // A stand that does not come to rest would distort the next attack.
    if (measured.isRestless) await this.#stands.giveUp(stand)
    return {
      name,
      target,
      quiet,
      measured,
      stated,
      verdict: judge(measured, quiet.felt, { prices: quiet.prices, limits: this.#limits, stated }),
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync()
  }
}
