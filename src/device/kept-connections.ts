import type { Device } from './device.ts'
import { KeptConnection } from './kept-connection.ts'

/** The connections to one device. An idle one ends when it has been so for the time-out. */
export class KeptConnections {
  /** A device that sends nothing for so long has failed. */
  readonly timeoutMs: number
  readonly #device: Device
  readonly #idle: KeptConnection[] = []

  constructor(device: Device, timeoutMs: number) {
    this.#device = device
    this.timeoutMs = timeoutMs
  }

  /** The one that was used last, or a new one. */
  take(): KeptConnection {
    return this.#idle.pop() ?? this.open()
  }

  open(): KeptConnection {
    return new KeptConnection(this.#device, this.timeoutMs, (connection) => this.#forget(connection))
  }

  /** For the next call. REQUIRES: its answer is whole. */
  keep(connection: KeptConnection): void {
    connection.finish()
    this.#idle.push(connection)
  }

  #forget(connection: KeptConnection): void {
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
  }
}
