import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** One part in so many of the time goes into the text, at most. */
const TEXT_SHARE = 20

/**
 * The metrics of one program, in the Prometheus text format. The only file that knows prom-client.
 * Names are given without the prefix "capfleet_".
 */
export class Metrics {
  readonly #registry = new Registry()
  #text = ''
  /** performance.now() */
  #textStandsUntilMs = 0

  constructor() {
    collectDefaultMetrics({ register: this.#registry })
  }

  counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    return new Counter({
      name: `capfleet_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
    })
  }

  /** `read` is called at each scrape and sets the gauge's values. */
  gauge(name: string, help: string, labelNames: readonly string[], read: (gauge: Gauge) => void): Gauge {
    return new Gauge({
      name: `capfleet_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      collect() {
        read(this)
      },
    })
  }

  /** A gauge with just the series that `read` sets at each scrape. */
  figures(name: string, help: string, labelNames: readonly string[], read: ReadSeries): void {
    new Gauge({
      name: `capfleet_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      collect() {
        forgetSeries(this, labelNames)
        read((value, labels = {}) => this.set(labels, value))
      },
    })
  }

  /** As figures, of counters that somebody else keeps; they may begin again at 0, as counters do. */
  totals(name: string, help: string, labelNames: readonly string[], read: ReadSeries): void {
    new Counter({
      name: `capfleet_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
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
    return new Histogram({
      name: `capfleet_${name}`,
      help,
      labelNames: [...labelNames],
      buckets: [...bucketsS],
      registers: [this.#registry],
    })
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /**
   * All metrics as of now. `refresh` reads what they cannot read by themselves. To make the text takes some of
   * everybody's time, so the last one stands for as long as keeps that to a twentieth, however many ask.
   */
  async text(refresh?: () => Promise<void>): Promise<string> {
    const beganMs = performance.now()
    if (beganMs < this.#textStandsUntilMs) return this.#text
    await refresh?.()
    const makingMs = performance.now()
    this.#text = await this.#registry.metrics()
    const madeMs = performance.now()
    this.#textStandsUntilMs = madeMs + (madeMs - makingMs) * TEXT_SHARE
    return this.#text
  }
}

/** Tells the values of a metric that there are at this moment. */
export type ReadSeries = (set: (value: number, labels?: Readonly<Record<string, string>>) => void) => void

/** A metric without labels would keep a 0. */
function forgetSeries(metric: Counter | Gauge, labelNames: readonly string[]): void {
  metric.reset()
  if (labelNames.length === 0) metric.remove()
}
