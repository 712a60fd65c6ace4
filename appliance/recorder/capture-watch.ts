import type { LiveCounts } from '../../native/live-capture.ts'
import type { EventSink } from '../events/event-log.ts'

/** An error of the disk is over when none was seen for so long. */
const DISK_QUIET_MS = 3_000

/** Tells what a running capture loses, and of a disk that fails and is well again, by events. */
export class CaptureWatch {
  readonly #events: EventSink
  #seen: LiveCounts | undefined
  #lastErrorMs: number | undefined
  #name = ''

  constructor(events: EventSink) {
    this.#events = events
  }

  /** What goes wrong with the disk now; "" = nothing. */
  get diskProblem(): string {
    return this.#lastErrorMs === undefined ? '' : `the disk fails: ${this.#seen?.diskMessage ?? ''}`
  }

  /** Every second or so; `atMs` is of a clock that never steps. */
  observe(name: string, counts: LiveCounts, atMs: number): void {
    const before = this.#seen
    this.#seen = counts
    this.#name = name
    for (const port of counts.ports) {
      const old = before?.ports.find((entry) => entry.port === port.port)
      this.#tellDrops(port.port, 'ring', port.ringDrops - (old?.ringDrops ?? 0n))
      this.#tellDrops(port.port, 'disk', port.diskDrops - (old?.diskDrops ?? 0n))
    }
    this.#watchDisk(counts.diskErrors - (before?.diskErrors ?? 0n), atMs)
  }

  #tellDrops(port: number, cause: 'ring' | 'disk', packets: bigint): void {
    if (packets <= 0n) return
    this.#events.append('packets-dropped', { name: this.#name, port, cause, packets: String(packets) })
  }

  #watchDisk(newErrors: bigint, atMs: number): void {
    const message = this.#seen?.diskMessage ?? ''
    if (newErrors > 0n) {
      if (this.#lastErrorMs === undefined) {
        this.#events.append('disk-error', { name: this.#name, message })
      }
      this.#lastErrorMs = atMs
    } else if (this.#lastErrorMs !== undefined && atMs - this.#lastErrorMs >= DISK_QUIET_MS) {
      this.#lastErrorMs = undefined
      this.#events.append('disk-recovered', { name: this.#name })
    }
  }
}
