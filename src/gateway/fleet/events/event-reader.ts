import type { Device } from '../../device/device.ts'
import { formatGap } from './event-texts.ts'

export interface ReaderOptions {
  /** Whether the client may and wants to hear of the device. */
  readonly wants: (device: Device) => boolean
  /** Whether it wants what happened before it came, too. */
  readonly takesOld: boolean
  /** Called when next() has something new. */
  readonly onNews: () => void
  readonly onLeave: (reader: EventReader) => void
}

/** Events that wait for one client; each is a text that all clients share. */
const WAITING_MAX = 2_000

/** One client of the fleet's events. What it is too slow for is counted, and told in its place. */
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

  /** Returns how many were given up for it. */
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

  /** What it is to be sent next; undefined: nothing yet. */
  next(): string | undefined {
    if (this.#missed === 0) return this.#waiting.shift()
    const missed = this.#missed
    this.#missed = 0
    return formatGap({ device: null, missed })
  }
}
