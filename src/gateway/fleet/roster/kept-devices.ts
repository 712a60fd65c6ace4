import type { Device } from '../../device/device.ts'

interface Vanished {
  /** With `vanishedAt`. */
  readonly device: Device
  /** When it is forgotten (performance.now()). */
  readonly untilMs: number
}

/**
 * The devices of a directory, with those that it told of lately. One that breaks down often vanishes from its directory
 * as well; without it the fleet would look whole, and what is read from all of it would silently be short. So it stays
 * as one that has vanished, to which nothing is sent (Device.absence).
 */
export class KeptDevices {
  readonly #keepMs: number
  #told: readonly Device[] = []
  readonly #vanished = new Map<string, Vanished>()

  constructor(keepMs: number) {
    this.#keepMs = keepMs
  }

  /** Takes over what the directory tells now (performance.now()). */
  tell(devices: readonly Device[], nowMs: number): void {
    const names = new Set(devices.map(({ name }) => name))
    const gone = this.#told.filter(({ name }) => !names.has(name))
    for (const device of gone)
      this.#vanished.set(device.name, {
        device: device.vanished(new Date()),
        untilMs: nowMs + this.#keepMs,
      })
    this.#told = devices
    // One that is told of under another name, at the address of one that vanished, has taken its place.
    const addresses = new Set(devices.map(({ address }) => address))
    for (const [name, { device, untilMs }] of this.#vanished)
      if (untilMs <= nowMs || names.has(name) || addresses.has(device.address)) this.#vanished.delete(name)
  }

  /** In the order of their names. */
  get devices(): readonly Device[] {
    const vanished = [...this.#vanished.values()].map(({ device }) => device)
    return [...this.#told, ...vanished].sort((a, b) => a.name.localeCompare(b.name, 'en'))
  }

  /** When the next one has to be forgotten; undefined when none has vanished. */
  get nextMs(): number | undefined {
    // They stand in the order in which they vanished.
    return this.#vanished.values().next().value?.untilMs
  }
}
