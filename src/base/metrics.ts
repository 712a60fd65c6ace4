import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/**
 * The metrics of one program, in the Prometheus text format. The only file that knows prom-client.
 * Names are given without the prefix "capfleet_".
 */
export class Metrics {
  readonly #registry = new Registry()

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

  text(): Promise<string> {
    return this.#registry.metrics()
  }
}
