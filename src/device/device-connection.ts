/**
 * One connection to a device, read into pooled buffers: what undici does per chunk (a new buffer,
 * stream events) costs three times as much as moving the bytes.
 */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { CapfleetError } from '../base/error.ts'
import type { Device } from './device.ts'
import { deviceFailure } from './device-failure.ts'
import { connectToDevice, isTlsDevice } from './device-socket.ts'
import { READ_BUFFERS } from './read-buffers.ts'
import { ReadSize, type ReadSizeLimits } from './read-size.ts'

export interface ConnectionOptions {
  /** Ends the connection at once; reads then fail with its reason. */
  readonly signal: AbortSignal
  readonly connectTimeoutMs: number
  /** A device that sends nothing for so long, while we read, has failed; or NO_IDLE_TIMEOUT. */
  readonly idleTimeoutMs: number
  readonly readSize: ReadSizeLimits
}

/** The kernel alone asks whether the device is there. */
export const NO_IDLE_TIMEOUT = 0
const KEEP_ALIVE_MS = 15_000
const CLOSED = new Error('the connection was closed')

/** What one read brought. Release it when `bytes` is no longer looked at: the buffer is used again. */
export interface ConnectionRead {
  readonly bytes: Buffer
  release(): void
}

/** Reads that are not released before reading pauses. TLS may bring a few small ones more. */
const READS_AHEAD = 2

export class DeviceConnection implements Disposable {
  readonly #device: string
  readonly #socket: Socket
  readonly #options: ConnectionOptions
  readonly #size: ReadSize
  readonly #onAbort: () => void
  readonly #connecting: NodeJS.Timeout
  #arrived: ConnectionRead[] = []
  #unreleased = 0
  /** When reading paused (performance.now()). */
  #pausedMs: number | undefined
  /** The buffer that the next read goes into. */
  #target: Buffer | undefined
  #hasRead = false
  #ended = false
  #failure: { readonly reason: unknown } | undefined
  #wake: (() => void) | undefined

  /**
   * Begins to connect, and sends `request` as soon as that is done; a failure is thrown by next().
   * Nothing is sent later than `connectTimeoutMs` from now, also by a process that was stopped meanwhile.
   */
  constructor(device: Device, request: string, options: ConnectionOptions) {
    this.#device = device.name
    this.#options = options
    this.#size = new ReadSize(options.readSize)
    this.#onAbort = () => this.#fail(options.signal.reason)
    this.#connecting = setTimeout(() => this.#failToConnect(), options.connectTimeoutMs)
    this.#socket = connectToDevice(device, {
      buffer: () => this.#nextTarget(),
      callback: (bytes, buffer) => this.#onRead(bytes, buffer as Buffer),
    })
    this.#listen()
    const lastMs = performance.now() + options.connectTimeoutMs
    this.#socket.once(isTlsDevice(device) ? 'secureConnect' : 'connect', () => {
      clearTimeout(this.#connecting)
      if (performance.now() > lastMs) this.#failToConnect()
      else this.#socket.write(request, 'latin1')
    })
    options.signal.addEventListener('abort', this.#onAbort, { once: true })
    if (options.signal.aborted) this.#onAbort()
  }

  /** The next read when it is here already. Not while a next() is waited for. */
  take(): ConnectionRead | undefined {
    return this.#arrived.shift()
  }

  /**
   * The bytes of the next read, or undefined when the device has closed its side. Fails with
   * device-unreachable, device-timeout or the signal's reason. One call at a time.
   */
  async next(): Promise<ConnectionRead | undefined> {
    for (;;) {
      const read = this.take()
      if (read !== undefined) return read
      if (this.#failure !== undefined) throw this.#failure.reason
      if (this.#ended) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /**
   * Hands every read to `sink` as it comes, without a promise in between; resolves when the device has
   * closed its side, or when the sink wants no more (false). Fails as next() does, and with what the
   * sink throws. Not together with next().
   */
  pour(sink: (read: ConnectionRead) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const pourArrived = (): void => {
        try {
          for (let read = this.#arrived.shift(); read !== undefined; read = this.#arrived.shift()) {
            if (sink(read)) continue
            resolve()
            return
          }
        } catch (error) {
          reject(error)
          return
        }
        if (this.#failure !== undefined) reject(this.#failure.reason)
        else if (this.#ended) resolve()
        else this.#wake = pourArrived
      }
      pourArrived()
    })
  }

  /** Breaks the connection. A read that is not released stays valid. */
  [Symbol.dispose](): void {
    this.#fail(CLOSED)
  }

  #listen(): void {
    const socket = this.#socket
    socket.setTimeout(this.#options.idleTimeoutMs)
    if (this.#options.idleTimeoutMs === NO_IDLE_TIMEOUT) socket.setKeepAlive(true, KEEP_ALIVE_MS)
    socket.on('timeout', () => {
      if (this.#pausedMs === undefined)
        this.#fail(this.#tooLate('send anything', this.#options.idleTimeoutMs))
    })
    socket.on('error', (error) => this.#fail(deviceFailure(this.#device, error)))
    socket.on('end', () => this.#end())
    socket.on('close', () => {
      if (this.#target !== undefined) READ_BUFFERS.give(this.#target)
      this.#target = undefined
      this.#end()
    })
  }

  #nextTarget(): Buffer {
    this.#target = READ_BUFFERS.take(this.#size.bytes)
    return this.#target
  }

  /** False pauses reading. Node asks for the next buffer in any case. */
  #onRead(bytes: number, buffer: Buffer): boolean {
    this.#target = undefined
    this.#hasRead = true
    this.#size.hasRead(bytes, buffer.byteLength)
    this.#unreleased += 1
    let isReleased = false
    const release = () => {
      if (isReleased) return
      isReleased = true
      READ_BUFFERS.give(buffer)
      this.#unreleased -= 1
      this.#resume()
    }
    const read = { bytes: buffer.subarray(0, bytes), release }
    if (this.#failure !== undefined) {
      release()
      return false
    }
    this.#arrived.push(read)
    this.#notify()
    if (this.#unreleased < READS_AHEAD) return true
    this.#pausedMs ??= performance.now()
    return false
  }

  #resume(): void {
    if (this.#pausedMs === undefined || this.#unreleased >= READS_AHEAD) return
    this.#size.hasStalled(performance.now() - this.#pausedMs)
    this.#pausedMs = undefined
    if (this.#socket.destroyed) return
    // The time without a read was ours; the device's begins now.
    this.#socket.setTimeout(this.#options.idleTimeoutMs)
    this.#socket.resume()
  }

  #failToConnect(): void {
    this.#fail(this.#tooLate('accept a connection', this.#options.connectTimeoutMs))
  }

  /** The first failure stands. What has arrived and nobody has taken is dropped. */
  #fail(reason: unknown): void {
    this.#failure ??= { reason }
    this.#break()
    this.#dropArrived()
    this.#notify()
  }

  /**
   * A request that is still on its way to a device that cannot be reached must not arrive later, when
   * others have its place: the kernel forgets it with a reset, not with a regular end. (Node has no
   * reset under TLS, nor before there is a connection, when nothing has been sent.)
   */
  #break(): void {
    const socket = this.#socket
    const isOnItsWay = !this.#hasRead && !socket.connecting && !socket.destroyed
    if (isOnItsWay && !(socket instanceof TLSSocket)) socket.resetAndDestroy()
    else socket.destroy()
  }

  #end(): void {
    clearTimeout(this.#connecting)
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    this.#ended = true
    this.#notify()
  }

  #dropArrived(): void {
    for (const read of this.#arrived.splice(0)) read.release()
  }

  #notify(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  #tooLate(what: string, limitMs: number): CapfleetError {
    return new CapfleetError(
      'device-timeout',
      `device ${this.#device} did not ${what} within ${limitMs / 1_000} s`,
      {
        members: { devices: [this.#device] },
      },
    )
  }
}
