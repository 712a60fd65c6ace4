import { CapfleetError } from '../base/error.ts'
import type { Metrics } from '../base/metrics.ts'

/** Counts the calls to devices that are not downloads, by how they ended: "ok" or an error code. */
export class ControlCalls {
  readonly #count: (device: string, result: string) => void

  constructor(metrics: Metrics) {
    const counter = metrics.counter('control_calls_total', 'Calls to devices, without downloads and probes', [
      'device',
      'result',
    ])
    this.#count = (device, result) => counter.inc({ device, result })
  }

  /** Does `work`, which is a call to `device`. */
  async run<Result>(device: string, work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work()
      this.#count(device, 'ok')
      return result
    } catch (error) {
      this.#count(device, error instanceof CapfleetError ? error.code : 'internal-error')
      throw error
    }
  }
}
