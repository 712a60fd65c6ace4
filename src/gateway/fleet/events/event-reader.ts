import type { Device } from '../../device/device.ts'
import { formatGap } from './event-texts.ts'

export interface ReaderOptions {
  /** Whether the client may and wants to receive events of the device. */
  readonly wants: (device: Device) => boolean
  /** Whether it wants events from before it connected, too. */
  readonly takesOld: boolean
  /** Called when next() has something new. */
  readonly onNews: () => void
  readonly onLeave: (reader: EventReader) => void
}

/** Maximum number of events queued for one client; each is a text shared by all clients. */
const WAITING_MAX = 2_000

/** One client of the fleet's events. Events that it is too slow for are counted, and replaced by that count. */
export class EventReader implements Disposable {
  readonly takesOld: boolean
  readonly #options: ReaderOptions
  readonly #wanted = new WeakMap<Device, boolean>()
  #waiting: string[] = []
  #missed = 0

  constructor(options: ReaderOptions) {
    this.#options = options
    this.takesOld = options.takesOld
  }

  wants(device: Device): boolean {
    const known = this.#wanted.get(device)
    if (known !== undefined) return known
    const isWanted = this.#options.wants(device)
    this.#wanted.set(device, isWanted)
    return isWanted
  }

  /** Returns how many events were dropped for it. */
  push(text: string): 0 | 1 {
    this.#waiting.push(text)
    this.#options.onNews()
    if (this.#waiting.length <= WAITING_MAX) return 0
    this.#waiting.shift()
    this.#missed += 1
    return 1
  }

  [Symbol.dispose](): void {
    this.#options.onLeave(this)
  }

  /** What to send next, or undefined if there is nothing yet. */
  next(): string | undefined {
    if (this.#missed === 0) return this.#waiting.shift()
    const missed = this.#missed
    this.#missed = 0
    return formatGap({ device: null, missed })
  }
}
