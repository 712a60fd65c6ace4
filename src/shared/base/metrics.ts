import { setImmediate } from 'node:timers/promises'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { productVersion } from './product-version.ts'

/**
 * Time budget for producing the text: the initial and maximum amount, and the fraction of elapsed time that is added.
 */
const TEXT_TIME_MAX_MS = 500
const TEXT_TIME_SHARE = 1 / 20

/** prom-client gauges whose names look like counters. Each is the sum of another one, which is kept. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/**
 * The metrics of one program, in the Prometheus text format. The only file that uses prom-client. Names are given
 * without the prefix "capfleet_". Labels have few values: never anything that callers supply, such as capture names,
 * and device names only in metrics that drop removed devices.
 */
export class Metrics {
  readonly #registry = new Registry()
  readonly #refreshes: (() => Promise<void>)[] = []
  #text = ''
  /** The text whose values have not been read yet, if anyone waits for one. */
  #nextText: Promise<string> | undefined
  /** The current time budget for the text, and since when (performance.now()). */
  #textTimeMs = TEXT_TIME_MAX_MS
  #textTimeSinceMs = performance.now()

  constructor() {
    collectDefaultMetrics({ register: this.#registry })
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name)
    this.figures('build_info', 'The running version; always 1', ['version'], (set) =>
      set(1, { version: productVersion() }),
    )
  }

  /**
   * `known`: series that exist from the start, because the first increment of one that starts at 1 would not be
   * visible.
   */
  counter(
    name: string,
    help: string,
    labelNames: readonly string[] = [],
    known: readonly Labels[] = [],
  ): Counter {
    const counter = new Counter(this.#described(name, help, labelNames))
    for (const labels of known) counter.inc(labels, 0)
    return counter
  }

  /** `read` is called at each scrape and sets the gauge's values. */
  gauge(name: string, help: string, labelNames: readonly string[], read: (gauge: Gauge) => void): Gauge {
    return new Gauge({
      ...this.#described(name, help, labelNames),
      collect() {
        read(this)
      },
    })
  }

  /** A gauge with exactly the series that `read` sets at each scrape. */
  figures(name: string, help: string, labelNames: readonly string[], read: ReadSeries): void {
    new Gauge({
      ...this.#described(name, help, labelNames),
      collect() {
        forgetSeries(this, labelNames)
        read((value, labels = {}) => this.set(labels, value))
      },
    })
  }

  /** Like figures, for counters that are maintained elsewhere; they may restart at 0, as counters do. */
  totals(name: string, help: string, labelNames: readonly string[], read: ReadSeries): void {
    new Counter({
      ...this.#described(name, help, labelNames),
      collect() {
        forgetSeries(this, labelNames)
        read((value, labels = {}) => this.inc(labels, value))
      },
    })
  }

  histogram(
    name: string,
    help: string,
    bucketsS: readonly number[],
    labelNames: readonly string[] = [],
  ): Histogram {
    return new Histogram({ ...this.#described(name, help, labelNames), buckets: [...bucketsS] })
  }

  /** `refresh` is called before each text, and reads values from outside this process. It must not fail. */
  beforeText(refresh: () => Promise<void>): void {
    this.#refreshes.push(refresh)
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /**
   * All metrics as of now. Producing the text blocks the process for a while, so a client that scrapes without pause
   * gets the previous one, which limits the cost to a twentieth of the time.
   */
  async text(): Promise<string> {
    const nowMs = performance.now()
    const addedMs = (nowMs - this.#textTimeSinceMs) * TEXT_TIME_SHARE
    this.#textTimeMs = Math.min(TEXT_TIME_MAX_MS, this.#textTimeMs + addedMs)
    this.#textTimeSinceMs = nowMs
    if (this.#textTimeMs <= 0) return this.#text
    this.#nextText ??= this.#makeText()
    return await this.#nextText
  }

  /** Made once for all clients that ask before its values are read. */
  async #makeText(): Promise<string> {
    const refreshed = Promise.all([setImmediate(), ...this.#refreshes.map((refresh) => refresh())])
    await refreshed.finally(() => {
      this.#nextText = undefined
    })
    const beganMs = performance.now()
    this.#text = await this.#registry.metrics()
    this.#textTimeMs -= performance.now() - beganMs
    return this.#text
  }

  #described(name: string, help: string, labelNames: readonly string[]) {
    return { name: `capfleet_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] }
  }
}

export type Labels = Readonly<Record<string, string>>

/** Sets the values that a metric has at this moment. */
export type ReadSeries = (set: (value: number, labels?: Labels) => void) => void

/** A metric without labels would keep a 0. */
function forgetSeries(metric: Counter | Gauge, labelNames: readonly string[]): void {
  metric.reset()
  if (labelNames.length === 0) metric.remove()
}
