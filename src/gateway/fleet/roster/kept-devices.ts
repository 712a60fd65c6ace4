import type { Device } from '../../device/device.ts'

interface Vanished {
  /** Has `vanishedAt` set. */
  readonly device: Device
  /** When it is dropped (performance.now()). */
  readonly untilMs: number
}

/**
 * The devices of a directory, including those it listed recently. A device that breaks down often vanishes from its
 * directory as well; without it the fleet would look complete, and what is read from all of it would silently lack its
 * packets. So it is kept as a vanished one, to which nothing is sent (Device.absence).
 */
export class KeptDevices {
  readonly #keepMs: number
  #told: readonly Device[] = []
  readonly #vanished = new Map<string, Vanished>()

  constructor(keepMs: number) {
    this.#keepMs = keepMs
  }

  /** Applies what the directory lists now (performance.now()). */
  tell(devices: readonly Device[], nowMs: number): void {
    const names = new Set(devices.map(({ name }) => name))
    const gone = this.#told.filter(({ name }) => !names.has(name))
    for (const device of gone)
      this.#vanished.set(device.name, {
        device: device.vanished(new Date()),
        untilMs: nowMs + this.#keepMs,
      })
    this.#told = devices
    // A device listed under another name, at the address of a vanished one, has replaced it.
    const addresses = new Set(devices.map(({ address }) => address))
    for (const [name, { device, untilMs }] of this.#vanished)
      if (untilMs <= nowMs || names.has(name) || addresses.has(device.address)) this.#vanished.delete(name)
  }

  /** The devices in the order of their names. */
  get devices(): readonly Device[] {
    const vanished = [...this.#vanished.values()].map(({ device }) => device)
    return [...this.#told, ...vanished].sort((a, b) => a.name.localeCompare(b.name, 'en'))
  }

  /** When the next one is to be dropped, or undefined if none has vanished. */
  get nextMs(): number | undefined {
    // They are in the order in which they vanished.
    return this.#vanished.values().next().value?.untilMs
  }
}
