/**
 * Spares callers the time-outs of a device that is down. After several failures in a row calls fail
 * at once; only a probe that succeeds lets calls through again, and the first failure after that
 * closes the way anew. (A breaker that tries again after a while would try with a caller's request.)
 */
import { CapfleetError } from '../base/error.ts'

/** `closed`: calls go through. `open`: they fail at once. `trial`: they go through, on probation. */
export type BreakerState = 'closed' | 'open' | 'trial'

export interface BreakerOptions {
  readonly device: string
  /** So many failures in a row open it. */
  readonly failuresMax: number
  /** Called when it opens: a probe tells sooner than the next one would whether the device is down. */
  readonly onOpen: (lastError: CapfleetError) => void
}

export class DeviceBreaker {
  readonly #options: BreakerOptions
  #state: BreakerState = 'closed'
  #failures = 0
  /** Of the present row of failures. */
  #firstFailureMs = 0
  #lastError: CapfleetError | undefined

  constructor(options: BreakerOptions) {
    this.#options = options
  }

  get state(): BreakerState {
    return this.#state
  }

  /** Does `work` unless the breaker is open, and learns from how it ends. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    this.check()
    try {
      const result = await work()
      this.succeeded()
      return result
    } catch (error) {
      this.failed(error)
      throw error
    }
  }

  /** Fails with device-unreachable while the breaker is open. */
  check(): void {
    if (this.#state !== 'open') return
    const { device } = this.#options
    const since = new Date(this.#firstFailureMs).toISOString()
    throw new CapfleetError(
      'device-unreachable',
      `device ${device} has failed since ${since} and is not asked until it answers a probe; last: ${this.#lastError?.message}`,
      { members: { devices: [device], since }, cause: this.#lastError },
    )
  }

  /** A call went well. While open it proves nothing: it may have begun before the failures. */
  succeeded(): void {
    if (this.#state !== 'open') this.#reset('closed')
  }

  /** A probe went well. The second one in a row ends the trial, as a call that goes well does. */
  probed(): void {
    this.#reset(this.#state === 'open' ? 'trial' : 'closed')
  }

  /** A call ended so. What the caller or the load is to blame for does not count. */
  failed(error: unknown): void {
    if (!isDeviceFault(error)) return
    this.#failures += 1
    if (this.#failures === 1) this.#firstFailureMs = Date.now()
    this.#lastError = error
    if (this.#state === 'open') return
    if (this.#state === 'closed' && this.#failures < this.#options.failuresMax) return
    this.#state = 'open'
    this.#options.onOpen(error)
  }

  #reset(state: BreakerState): void {
    this.#state = state
    this.#failures = 0
  }
}

const FAULTS: ReadonlySet<string> = new Set(['device-unreachable', 'device-timeout', 'device-protocol'])

/** An answer with a status of 400 to 499 is the device at work, however odd its body. */
function isDeviceFault(error: unknown): error is CapfleetError {
  if (!(error instanceof CapfleetError) || !FAULTS.has(error.code)) return false
  const status = error.details.members?.deviceStatus
  return typeof status !== 'number' || status < 400 || status > 499
}
