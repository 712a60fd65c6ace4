import { CapfleetError } from '../../shared/base/error.ts'
import type { Device } from './device.ts'
import { type ConnectionOptions, DeviceConnection } from './device-connection.ts'
import { type AnswerOptions, DeviceStream } from './device-stream.ts'
import { ANSWER_READ_SIZE } from './read-size.ts'

export interface PoolOptions {
  readonly connectTimeoutMs: number
  /** How long a connection may be idle before it is closed. */
  readonly idleMs: number
}

/** Limits the cost of idle connections; those in use are limited by the callers. */
const RESTING_MAX = 128

/** The connections to one device. Reusable ones are kept for the next exchange. */
export class ConnectionPool implements Disposable {
  readonly #device: Device
  readonly #options: PoolOptions
  readonly #open = new Set<DeviceConnection>()
  /** Idle connections in order of last use, the most recent at the end. */
  readonly #resting: DeviceConnection[] = []
  #isClosed = false

  constructor(device: Device, options: PoolOptions) {
    this.#device = device
    this.#options = options
  }

  /**
   * Sends the request over an idle connection or a new one. A device may close an idle connection at any time; if it
   * does so before the first byte of its answer, the request is retried once over a new connection. REQUIRES: the
   * request changes nothing.
   */
  async ask(request: string, options: AnswerOptions): Promise<DeviceStream> {
    const onReusable = (connection: DeviceConnection) => this.#keep(connection)
    const kept = this.#takeResting()
    if (kept !== undefined) {
      try {
        return await DeviceStream.open(kept, request, { ...options, onReusable })
      } catch (error) {
        const isLost = error instanceof CapfleetError && error.code === 'device-unreachable'
        if (!isLost || kept.isAnswered) throw error
      }
    }
    return await DeviceStream.open(this.#connect(), request, { ...options, onReusable })
  }

  /** Sends the request over a connection used only for this exchange. The device receives the request at most once. */
  async askAlone(
    request: string,
    { readSize = ANSWER_READ_SIZE, ...options }: AnswerOptions & Partial<Pick<ConnectionOptions, 'readSize'>>,
  ): Promise<DeviceStream> {
    return await DeviceStream.open(this.#connect(readSize), request, options)
  }

  /** Closes all connections at once; no others can be opened. */
  [Symbol.dispose](): void {
    this.#isClosed = true
    for (const connection of this.#open) connection[Symbol.dispose]()
  }

  #connect(readSize = ANSWER_READ_SIZE): DeviceConnection {
    if (this.#isClosed) throw new CapfleetError('draining', `device ${this.#device.name} is no longer used`)
    const { connectTimeoutMs } = this.#options
    const connection = new DeviceConnection(this.#device, { connectTimeoutMs, readSize }, () => {
      this.#open.delete(connection)
      const index = this.#resting.indexOf(connection)
      if (index >= 0) this.#resting.splice(index, 1)
    })
    this.#open.add(connection)
    return connection
  }

  #takeResting(): DeviceConnection | undefined {
    for (let kept = this.#resting.pop(); kept !== undefined; kept = this.#resting.pop()) {
      if (kept.isOpen) return kept
    }
    return undefined
  }

  #keep(connection: DeviceConnection): void {
    if (this.#resting.length >= RESTING_MAX) connection[Symbol.dispose]()
    else {
      connection.rest(this.#options.idleMs)
      this.#resting.push(connection)
    }
  }
}
