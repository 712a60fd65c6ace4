import type { DeviceBreaker } from './device-breaker.ts'
import { type CaptureEntry, fetchDeviceCaptures, type ListReading } from './device-captures.ts'
import type { DeviceClient } from './device-client.ts'
import { withinLimit } from './within-limit.ts'

interface Fetched {
  readonly startedMs: number
  readonly captures: Promise<readonly CaptureEntry[]>
}

export interface CaptureListOptions {
  readonly timeoutMs: number
  readonly reading: ListReading
}

/** Longer than any age that is asked for. Then a list, which may be large, is forgotten. */
const KEPT_MS = 2_000

/**
 * The capture list of one device, asked for once by all who want it at the same time: a thousand
 * downloads of captures that begin together cost one list.
 */
export class CaptureListCache {
  readonly #client: DeviceClient
  readonly #breaker: DeviceBreaker
  readonly #timeoutMs: number
  readonly #reading: ListReading
  #fetched: Fetched | undefined

  constructor(client: DeviceClient, breaker: DeviceBreaker, options: CaptureListOptions) {
    this.#client = client
    this.#breaker = breaker
    this.#timeoutMs = options.timeoutMs
    this.#reading = options.reading
  }

  /**
   * A list that was asked for at most `maxAgeMs` ago. Fails as DeviceClient.getJson does, with
   * device-timeout, or with the signal's reason; failures are not kept.
   */
  async get(maxAgeMs: number, signal: AbortSignal): Promise<readonly CaptureEntry[]> {
    const nowMs = performance.now()
    const kept = this.#fetched
    const fetched = kept !== undefined && nowMs - kept.startedMs <= maxAgeMs ? kept : this.#fetch(nowMs)
    const device = this.#client.device.name
    return withinLimit(device, { timeoutMs: this.#timeoutMs, signal }, (ended) =>
      race(fetched.captures, ended),
    )
  }

  /** After a change on the device. */
  forget(): void {
    this.#fetched = undefined
  }

  #fetch(startedMs: number): Fetched {
    // Not under the caller's signal: others may be waiting for the same list.
    const limit = { timeoutMs: this.#timeoutMs, signal: new AbortController().signal }
    const captures = this.#breaker.run(() => fetchDeviceCaptures(this.#client, this.#reading, limit))
    const fetched = { startedMs, captures }
    this.#fetched = fetched
    const forget = () => {
      if (this.#fetched === fetched) this.#fetched = undefined
    }
    captures.then(() => setTimeout(forget, KEPT_MS).unref(), forget)
    return fetched
  }
}

function race<Value>(value: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    value.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
