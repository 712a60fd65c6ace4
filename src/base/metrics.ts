import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** How much time may go into the text: so much at the start, and this part of each moment is added. */
const TEXT_TIME_MAX_MS = 500
const TEXT_TIME_SHARE = 1 / 20

/**
 * The metrics of one program, in the Prometheus text format. The only file that knows prom-client.
 * Names are given without the prefix "capfleet_".
 */
export class Metrics {
  readonly #registry = new Registry()
  #text = ''
  /** How much time may go into the text now, and since when (performance.now()). */
  #textTimeMs = TEXT_TIME_MAX_MS
  #textTimeSinceMs = performance.now()

  constructor() {
    collectDefaultMetrics({ register: this.#registry })
  }

  counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    return new Counter(this.#described(name, help, labelNames))
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

  /** A gauge with just the series that `read` sets at each scrape. */
  figures(name: string, help: string, labelNames: readonly string[], read: ReadSeries): void {
    new Gauge({
      ...this.#described(name, help, labelNames),
      collect() {
        forgetSeries(this, labelNames)
        read((value, labels = {}) => this.set(labels, value))
      },
    })
  }

  /** As figures, of counters that somebody else keeps; they may begin again at 0, as counters do. */
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

  get contentType(): string {
    return this.#registry.contentType
  }

  /**
   * All metrics as of now. `refresh` reads what they cannot read by themselves. To make the text takes some of
   * everybody's time: who asks without a pause gets the last one again, so that it is a twentieth at most.
   */
  async text(refresh?: () => Promise<void>): Promise<string> {
    const nowMs = performance.now()
    const addedMs = (nowMs - this.#textTimeSinceMs) * TEXT_TIME_SHARE
    this.#textTimeMs = Math.min(TEXT_TIME_MAX_MS, this.#textTimeMs + addedMs)
    this.#textTimeSinceMs = nowMs
    if (this.#textTimeMs <= 0) return this.#text
    await refresh?.()
    const beganMs = performance.now()
    this.#text = await this.#registry.metrics()
    this.#textTimeMs -= performance.now() - beganMs
    return this.#text
  }

  #described(name: string, help: string, labelNames: readonly string[]) {
    return { name: `capfleet_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] }
  }
}

/** Tells the values of a metric that there are at this moment. */
export type ReadSeries = (set: (value: number, labels?: Readonly<Record<string, string>>) => void) => void

/** A metric without labels would keep a 0. */
function forgetSeries(metric: Counter | Gauge, labelNames: readonly string[]): void {
  metric.reset()
  if (labelNames.length === 0) metric.remove()
}
