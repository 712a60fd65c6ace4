import { type DeviceClient, withinLimit } from '../device/device-client.ts'
import { type CaptureEntry, fetchDeviceCaptures, type ListReading } from './device-captures.ts'
import type { DeviceBreaker } from './health/device-breaker.ts'

interface Fetched {
  readonly startedMs: number
  readonly captures: Promise<readonly CaptureEntry[]>
  isRunning: boolean
}

export interface CaptureListOptions {
  readonly timeoutMs: number
  readonly reading: ListReading
}

/** How long a list, which may be large, is remembered: longer than any age that is asked for. */
const KEPT_MS = 2_000

/**
 * The capture list of one device, asked for once by all who want it at the same time: a thousand
 * downloads of captures that begin together cost one list. One is read at a time; who needs a newer one
 * shares the next, so that no number of callers makes the gateway hold more than two.
 */
export class CaptureListCache {
  readonly #client: DeviceClient
  readonly #breaker: DeviceBreaker
  readonly #timeoutMs: number
  readonly #reading: ListReading
  #fetched: Fetched | undefined
  /** Begins when the running one has ended. */
  #next: Promise<readonly CaptureEntry[]> | undefined

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
    const captures = this.#list(performance.now() - maxAgeMs)
    const device = this.#client.device.name
    return withinLimit(device, { timeoutMs: this.#timeoutMs, signal }, (ended) => race(captures, ended))
  }

  /** Forgets the list, because the device has changed. */
  forget(): void {
    this.#fetched = undefined
  }

  /** A list that was asked for at `sinceMs` or later. */
  #list(sinceMs: number): Promise<readonly CaptureEntry[]> {
    const kept = this.#fetched
    if (kept !== undefined && kept.startedMs >= sinceMs) return kept.captures
    if (kept?.isRunning !== true) return this.#fetch()
    const begin = () => {
      this.#next = undefined
      return this.#fetch()
    }
    this.#next ??= kept.captures.then(begin, begin)
    return this.#next
  }

  #fetch(): Promise<readonly CaptureEntry[]> {
    // The caller's signal must not end the call: others may be waiting for the same list.
    const limit = { timeoutMs: this.#timeoutMs, signal: new AbortController().signal }
    const captures = this.#breaker.run(() => fetchDeviceCaptures(this.#client, this.#reading, limit))
    const fetched = { startedMs: performance.now(), captures, isRunning: true }
    this.#fetched = fetched
    const forget = () => {
      if (this.#fetched === fetched) this.#fetched = undefined
    }
    captures.then(() => {
      fetched.isRunning = false
      setTimeout(forget, KEPT_MS).unref()
    }, forget)
    return captures
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
