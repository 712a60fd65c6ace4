import type { Metrics } from '../../src/shared/base/metrics.ts'
import type { LiveLimit } from '../../src/shared/http/live-limit.ts'
import { EVENT_KINDS } from './event-log.ts'
import type { StoredEvent } from './stored-event.ts'

/** Counts events since the program started, including rolls and removals. */
export class EventMetrics {
  readonly #events

  constructor(metrics: Metrics, live: LiveLimit) {
    this.#events = metrics.counter('events_total', 'Events of the recorder by kind', ['kind'])
    // A series that begins with its first event hides that event from rate().
    for (const kind of EVENT_KINDS) this.#events.inc({ kind }, 0)
    metrics.gauge('live_clients', 'Clients that follow events or telemetry', [], (gauge) =>
      gauge.set(live.used),
    )
  }

  happened({ data }: StoredEvent): void {
    this.#events.inc({ kind: data.Kind })
  }
}
