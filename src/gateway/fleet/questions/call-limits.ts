import { type Blame, CapfleetError } from '../../../shared/base/error.ts'
import type { Metrics } from '../../../shared/base/metrics.ts'
import type { Fleet } from '../fleet.ts'

/** Maximum number of concurrent calls to one device. Each takes one of the device's connections. */
export interface CallLimitSettings {
  readonly callsMax: number
  /** Maximum share of a single user. */
  readonly callsPerUserMax: number
}

export interface DeviceCall {
  readonly device: string
  /** The user who makes the call. */
  readonly user: string
}

const RETRY_AFTER_S = 1

/** How a call ended: well, or who was to blame. A series per error code would be too many for each device. */
type CallResult = 'ok' | Blame
const RESULTS: readonly CallResult[] = ['ok', 'caller', 'device', 'ours']

/**
 * Calls to devices other than downloads: counted by outcome, and limited, so that no caller can take all the
 * connections of a device, which its probes need too.
 */
export class CallLimits {
  readonly #limits: CallLimitSettings
  /** Ended calls by device; removed when the device leaves the fleet. */
  readonly #ended = new Map<string, Record<CallResult, number>>()
  /** Running calls by device, and by device and user; there is no entry for 0. */
  readonly #running = new Map<string, number>()

  constructor(limits: CallLimitSettings, metrics: Metrics, fleet: Pick<Fleet, 'find'>) {
    this.#limits = limits
    metrics.totals(
      'control_calls_total',
      'Calls to devices, not counting downloads and probes, by result: ok, or who caused the failure',
      ['device', 'result'],
      (set) => {
        for (const [device, ended] of this.#ended) {
          if (fleet.find(device) === undefined) this.#ended.delete(device)
          else for (const result of RESULTS) set(ended[result], { device, result })
        }
      },
    )
  }

  /** Runs `work`, which is a call to a device. Fails with too-many-requests if it would exceed a limit. */
  async run<Result>(call: DeviceCall, work: () => Promise<Result>): Promise<Result> {
    const { device } = call
    try {
      using _place = this.#take(call)
      const result = await work()
      this.#count(device, 'ok')
      return result
    } catch (error) {
      this.#count(device, error instanceof CapfleetError ? error.kind.blame : 'ours')
      throw error
    }
  }

  #count(device: string, result: CallResult): void {
    const ended = this.#ended.get(device) ?? { ok: 0, caller: 0, device: 0, ours: 0 }
    ended[result] += 1
    this.#ended.set(device, ended)
  }

  #take({ device, user }: DeviceCall): Disposable {
    const { callsMax, callsPerUserMax } = this.#limits
    const keys = [device, `${device} ${user}`]
    const [ofAll = 0, ofUser = 0] = keys.map((key) => this.#running.get(key) ?? 0)
    if (ofUser >= callsPerUserMax)
      throw tooMany(`${ofUser} of your calls are already running on device ${device}`)
    if (ofAll >= callsMax) throw tooMany(`${ofAll} calls are already running on device ${device}`)
    for (const key of keys) this.#add(key, 1)
    return {
      [Symbol.dispose]: () => {
        for (const key of keys) this.#add(key, -1)
      },
    }
  }

  #add(key: string, change: 1 | -1): void {
    const running = (this.#running.get(key) ?? 0) + change
    if (running === 0) this.#running.delete(key)
    else this.#running.set(key, running)
  }
}

function tooMany(what: string): CapfleetError {
  return new CapfleetError('too-many-requests', `${what}, which is the limit; try again when one has ended`, {
    retryAfterS: RETRY_AFTER_S,
  })
}
