export interface SensorOptions<Value> {
  readonly everyMs: number
  /** A reading that takes longer is abandoned; the signal of `read` aborts. */
  readonly limitMs: number
  readonly read: (signal: AbortSignal) => Promise<Value>
}

/** A reading is shown for this many periods; after that the sensor counts as absent. */
const PERIODS_KEPT = 3

/**
 * A value that is read periodically in the background, so that no caller waits for it. A sensor that fails has no
 * value, one that hangs has none once its last reading is too old, and neither affects others. The first reading begins
 * at once. Owned by its creator; ends when disposed.
 */
export class BackgroundSensor<Value> implements Disposable {
  readonly #options: SensorOptions<Value>
  readonly #timer: NodeJS.Timeout
  #isEnded = false
  /** Aborts the reading in progress. */
  #stop = new AbortController()
  #value: Value | undefined
  #readAtMs = 0
  #reading: Promise<void> | undefined

  constructor(options: SensorOptions<Value>) {
    this.#options = options
    // A program must not be kept running by its sensors.
    this.#timer = setInterval(() => void this.refresh(), options.everyMs).unref()
    void this.refresh()
  }

  /** The last reading, or undefined if there is none within the last periods. */
  get value(): Value | undefined {
    const { everyMs, limitMs } = this.#options
    const isOld = performance.now() - this.#readAtMs > PERIODS_KEPT * everyMs + limitMs
    return isOld ? undefined : this.#value
  }

  /** Waits for the end of a reading, successful or not, that may have begun before; within limitMs. Never rejects. */
  refresh(): Promise<void> {
    if (this.#isEnded) return Promise.resolve()
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, this.#options.limitMs).unref()
    return Promise.race([this.#reading, late.promise]).finally(() => clearTimeout(timer))
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#isEnded = true
    this.#stop.abort()
  }

  async #read(): Promise<void> {
    const { limitMs, read } = this.#options
    const stop = new AbortController()
    this.#stop = stop
    const timer = setTimeout(() => stop.abort(), limitMs).unref()
    try {
      this.#value = await read(stop.signal)
      this.#readAtMs = performance.now()
    } catch {
      // A reading that is late says nothing of the sensor: the one before stays until it is too old.
      if (!stop.signal.aborted) this.#value = undefined
    } finally {
      clearTimeout(timer)
    }
  }
}
