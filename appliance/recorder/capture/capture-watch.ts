import type { LiveCounts } from '../../../native/live-capture.ts'
import type { EventSink } from '../../events/event-log.ts'

/** A disk error counts as over if none was seen for this long. */
const DISK_QUIET_MS = 3_000
const DOWN = 'captures nothing: its interface is down, has no carrier or is missing'

/** Reports losses of a running capture, ports that are down and failing disks as events, and when they work again. */
export class CaptureWatch {
  readonly #events: EventSink
  #seen: LiveCounts | undefined
  #lastErrorMs: number | undefined
  #name = ''
  /** Numbers of the ports that are down. */
  #down: ReadonlySet<number> = new Set()

  constructor(events: EventSink) {
    this.#events = events
  }

  /** The current problem with the disk or the ports; "" = none. */
  get problem(): string {
    const disk = this.#lastErrorMs === undefined ? [] : [`disk error: ${this.#seen?.diskMessage ?? ''}`]
    const ports = [...this.#down].map((port) => `cap${port} ${DOWN}`)
    return [...disk, ...ports].join('; ')
  }

  /** Called about every second; `atMs` is from a clock that never steps. */
  observe(name: string, counts: LiveCounts, atMs: number): void {
    const before = this.#seen
    this.#seen = counts
    this.#name = name
    for (const port of counts.ports) {
      const old = before?.ports.find((entry) => entry.port === port.port)
      this.#tellDrops(port.port, 'ring', port.ringDrops - (old?.ringDrops ?? 0n))
      this.#tellDrops(port.port, 'disk', port.diskDrops - (old?.diskDrops ?? 0n))
    }
    this.#watchPorts(counts)
    this.#watchDisk(counts.diskErrors - (before?.diskErrors ?? 0n), atMs)
  }

  #tellDrops(port: number, cause: 'ring' | 'disk', packets: bigint): void {
    if (packets <= 0n) return
    this.#events.append('packets-dropped', { name: this.#name, port, cause, packets: String(packets) })
  }

  /** The engine captures again as soon as a port is back. */
  #watchPorts({ ports }: LiveCounts): void {
    const before = this.#down
    this.#down = new Set(ports.filter(({ isUp }) => !isUp).map(({ port }) => port))
    for (const port of this.#down)
      if (!before.has(port)) this.#events.append('port-down', { name: this.#name, port, message: DOWN })
    for (const port of before)
      if (!this.#down.has(port)) this.#events.append('port-up', { name: this.#name, port })
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
