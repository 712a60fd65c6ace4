/**
 * Spares callers the time-outs of a device that is down. After several consecutive failed probes, calls fail at once.
 * Only a successful probe lets calls through again, and if the first probe after that fails, the breaker reopens.
 *
 * Only probes decide, because a probe is the gateway's own question, the same for every caller. Whether a call or a
 * download fails depends on what its caller asked: a slow filter times out, a long parameter is echoed in an oversized
 * head, a damaged capture breaks off each time. So the failure of a call is only a suspicion, which triggers a probe
 * at once. A dead device is thus found as soon as it is needed, and no caller can make the gateway give up a healthy
 * device.
 *
 * A device that has vanished from its directory is not probed, and its breaker is open until it is back.
 */
import { CapfleetError } from '../../../shared/base/error.ts'
import type { Device } from '../../device/device.ts'

/** `closed`: calls go through. `open`: they fail at once. `trial`: they go through, on probation. */
export type BreakerState = 'closed' | 'open' | 'trial'

export interface BreakerOptions {
  readonly device: Pick<Device, 'name' | 'absence'>
  /** Number of consecutive failed probes that opens the breaker. */
  readonly failuresMax: number
  readonly onOpen: (lastError: CapfleetError) => void
  /** Called when a call failed in a way that a dead device would explain; a probe is then due. */
  readonly onSuspicion: () => void
}

export class DeviceBreaker {
  readonly #options: BreakerOptions
  #state: BreakerState = 'closed'
  #failures = 0
  /** When the current series of failed probes began (performance.now()). */
  #firstFailureMs = 0
  #lastError: CapfleetError | undefined
  #outages = 0

  constructor(options: BreakerOptions) {
    this.#options = options
  }

  get state(): BreakerState {
    return this.#options.device.absence === undefined ? this.#state : 'open'
  }

  /** How often a call could not reach the device, or its answer broke off. It may have been restarted each time. */
  get outages(): number {
    return this.#outages
  }

  /** Notes that an answer of the device broke off, where no error says so. */
  brokeOff(): void {
    this.#outages += 1
  }

  /** Runs `work`, a caller's call to the device, unless the breaker is open. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    this.check()
    try {
      const result = await work()
      this.#succeeded()
      return result
    } catch (error) {
      this.suspect(error)
      throw error
    }
  }

  /** Fails with device-unreachable while the breaker is open. */
  check(): void {
    const { name, absence } = this.#options.device
    if (absence !== undefined) throw absence
    if (this.#state !== 'open') return
    const since = new Date(this.#firstFailureMs).toISOString()
    // The message names the device too.
    const failure = this.#lastError?.message.replace(`device ${name}`, 'it') ?? 'it failed'
    throw new CapfleetError(
      'device-unreachable',
      `device ${name} has been failing since ${since} and is not used until it answers a probe: ${failure}`,
      { members: { devices: [name], since }, cause: this.#lastError },
    )
  }

  /** Reports that a call failed. Triggers a probe if the device may be to blame; counts nothing. */
  suspect(error: unknown): void {
    if (error instanceof CapfleetError && error.code === 'device-unreachable') this.brokeOff()
    if (isDeviceFault(error)) this.#options.onSuspicion()
  }

  /** Reports a successful probe. The second one in a row ends the trial, as does a successful call. */
  probed(): void {
    this.#reset(this.#state === 'open' ? 'trial' : 'closed')
  }

  /** Reports a failed probe. A device that answers, if only to refuse, is not down. */
  probeFailed(error: unknown): void {
    if (!isDeviceFault(error)) return
    this.#failures += 1
    if (this.#failures === 1) this.#firstFailureMs = Date.now()
    this.#lastError = error
    if (this.#state === 'open') return
    if (this.#state === 'closed' && this.#failures < this.#options.failuresMax) return
    this.#state = 'open'
    this.#options.onOpen(error)
  }

  /** A successful call proves nothing while the breaker is open: it may have begun before the failures. */
  #succeeded(): void {
    if (this.#state !== 'open') this.#reset('closed')
  }

  #reset(state: BreakerState): void {
    this.#state = state
    this.#failures = 0
  }
}

/** An answer with a status of 400 to 499 shows a working device, however odd its body. */
function isDeviceFault(error: unknown): error is CapfleetError {
  if (!(error instanceof CapfleetError) || error.kind.blame !== 'device') return false
  const status = error.details.members?.deviceStatus
  return typeof status !== 'number' || status < 400 || status > 499
}
