import type { Socket } from 'node:net'
import type { Device } from './device.ts'
import { deviceSilent } from './device-failure.ts'
import { connectToDevice } from './device-socket.ts'

/** Who waits for the answer to a request. */
export interface AnswerReader {
  /** The next bytes, to be looked at before it returns only. Returns whether more may follow at once. */
  read(bytes: Buffer): boolean
  /** The device has closed the connection, or it has failed. Nothing follows. */
  lost(error: Error | undefined): void
}

/** All connections read into it, one after the other. */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536)

/** A connection to a device that carries one exchange after the other. */
export class KeptConnection {
  readonly #socket: Socket
  readonly #onIdleLoss: (connection: KeptConnection) => void
  #reader: AnswerReader | undefined
  #wasUsed = false

  /**
   * Begins to connect. It is lost with device-timeout when nothing moves for `silenceMs`;
   * `onIdleLoss` is told when it is lost while no exchange runs.
   */
  constructor(device: Device, silenceMs: number, onIdleLoss: (connection: KeptConnection) => void) {
    this.#onIdleLoss = onIdleLoss
    const socket = connectToDevice(device, {
      buffer: READ_BUFFER,
      callback: (bytes) => this.#onRead(READ_BUFFER.subarray(0, bytes)),
    })
    // Who waits for an answer has a connection to us; an idle one holds nothing up.
    socket.unref()
    socket.setTimeout(silenceMs, () => this.#lose(deviceSilent(device.name, silenceMs)))
    socket.on('error', (error) => this.#lose(error))
    socket.on('end', () => this.#lose(undefined))
    socket.on('close', () => this.#lose(undefined))
    this.#socket = socket
  }

  /** Whether it has carried a whole exchange before this one: the device may be about to close it. */
  get wasUsed(): boolean {
    return this.#wasUsed
  }

  /** REQUIRES: no exchange runs. */
  begin(request: string, reader: AnswerReader): void {
    this.#reader = reader
    this.#socket.write(request, 'latin1')
  }

  /** The answer is whole; the connection can carry the next one. */
  finish(): void {
    this.#reader = undefined
    this.#wasUsed = true
  }

  /** After a read() that wanted no more at once. */
  resume(): void {
    this.#socket.resume()
  }

  /** Its reader is told nothing more. */
  destroy(): void {
    this.#reader = undefined
    this.#socket.destroy()
  }

  #onRead(bytes: Buffer): boolean {
    if (this.#reader !== undefined) return this.#reader.read(bytes)
    // Nobody has asked for that: it would be taken for the answer to the next request.
    this.#lose(undefined)
    return false
  }

  #lose(error: Error | undefined): void {
    const reader = this.#reader
    this.destroy()
    if (reader === undefined) this.#onIdleLoss(this)
    else reader.lost(error)
  }
}
