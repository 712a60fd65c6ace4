export interface SensorOptions<Value> {
  readonly everyMs: number
  /** Longer than this and the reading is given up; the signal of `read` says so. */
  readonly limitMs: number
  readonly read: (signal: AbortSignal) => Promise<Value>
}

/** A reading is shown for so many periods; after that the sensor counts as absent. */
const PERIODS_KEPT = 3

/**
 * A figure that is read in the background, again and again, so that nobody waits for it. A sensor
 * that fails or hangs has no value, and disturbs no other one. The first reading begins at once.
 * Owned by whoever made it; ends on dispose.
 */
export class BackgroundSensor<Value> implements Disposable {
  readonly #options: SensorOptions<Value>
  readonly #timer: NodeJS.Timeout
  #isEnded = false
  /** Stops the reading under way. */
  #stop = new AbortController()
  #value: Value | undefined
  #readAtMs = 0
  #reading: Promise<void> | undefined

  constructor(options: SensorOptions<Value>) {
    this.#options = options
    // A program must not live for its sensors.
    this.#timer = setInterval(() => void this.refresh(), options.everyMs).unref()
    void this.refresh()
  }

  /** The last reading; undefined when there is none, or none in the last periods. */
  get value(): Value | undefined {
    const { everyMs, limitMs } = this.#options
    const isOld = performance.now() - this.#readAtMs > PERIODS_KEPT * everyMs + limitMs
    return isOld ? undefined : this.#value
  }

  /** Ends with a reading, good or bad, that may have begun before; within limitMs. Never rejects. */
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
      this.#value = undefined
    } finally {
      clearTimeout(timer)
    }
  }
}
