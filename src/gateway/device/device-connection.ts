/**
 * A connection to a device, read into pooled buffers: what Node's streams do per chunk (a new buffer, events)
 * costs three times as much as moving the bytes. (Reading the socket in C++ would take a tenth off a merge: too little
 * for a way that TLS cannot go.) It carries one exchange after the other; an exchange is a request and all that the
 * device sends after it.
 */
import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Device } from './device.ts'
import { deviceFailure, deviceLate } from './device-failure.ts'
import { READ_BUFFERS, ReadSize, type ReadSizeLimits, takeReadBuffer } from './read-size.ts'

export interface ConnectionOptions {
  readonly connectTimeoutMs: number
  readonly readSize: ReadSizeLimits
}

export interface ExchangeOptions {
  /** Ends the connection at once; reads then fail with its reason. */
  readonly signal: AbortSignal
  /** A device that sends nothing for so long, while we read, has failed; or NO_IDLE_TIMEOUT. */
  readonly idleTimeoutMs: number
}

/** The kernel alone asks whether the device is there. */
export const NO_IDLE_TIMEOUT = 0
const KEEP_ALIVE_MS = 15_000
const CLOSED = new CapfleetError('draining', 'the connection to the device was closed')

/** What one read brought. Release it when `bytes` is no longer looked at: the buffer is used again. */
export interface ConnectionRead {
  readonly bytes: Buffer
  release(): void
}

/** Reads that are not released before reading pauses. TLS may bring a few small ones more. */
const READS_AHEAD = 2

export class DeviceConnection implements Disposable {
  /** The name of the device. */
  readonly device: string
  readonly #peer: Device
  readonly #socket: Socket
  readonly #size: ReadSize
  readonly #connecting: NodeJS.Timeout
  readonly #onAbort = (): void => this.#fail(this.#exchange?.signal.reason)
  #isConnected = false
  /** The exchange that runs; undefined while the connection rests. */
  #exchange: ExchangeOptions | undefined
  /** The request while it waits for the connection; empty once it has been sent. */
  #request = ''
  /** Whether the device has sent anything in this exchange. */
  #isAnswered = false
  #arrived: ConnectionRead[] = []
  #unreleased = 0
  #isPaused = false
  /** The buffer that the next read goes into. */
  #target: Buffer | undefined
  #ended = false
  #failure: { readonly reason: unknown } | undefined
  #wake: (() => void) | undefined

  /**
   * Begins to connect; fails with device-unreachable when the device has vanished. `onClose` is called when the
   * connection has ended, however.
   */
  constructor(
    device: Device,
    { connectTimeoutMs, readSize }: ConnectionOptions,
    onClose: () => void = () => undefined,
  ) {
    const { absence } = device
    if (absence !== undefined) throw absence
    this.device = device.name
    this.#peer = device
    this.#size = new ReadSize(readSize)
    const lastMs = performance.now() + connectTimeoutMs
    const late = () => this.#fail(deviceLate(device.name, 'accept a connection', connectTimeoutMs))
    this.#connecting = setTimeout(late, connectTimeoutMs)
    this.#socket = connectTo(device, {
      buffer: () => this.#nextTarget(),
      callback: (bytes, buffer) => this.#onRead(bytes, buffer as Buffer),
    })
    this.#socket.once(isTls(device) ? 'secureConnect' : 'connect', () => {
      clearTimeout(this.#connecting)
      this.#isConnected = true
      // A process that was paused must not send the request after the limit either.
      if (performance.now() > lastMs) late()
      else this.#send()
    })
    this.#socket.once('close', onClose)
    this.#listen()
  }

  /** Whether a request can be sent over the connection, as far as we know. */
  get isOpen(): boolean {
    return !this.#ended && this.#failure === undefined
  }

  /** Whether the device has sent anything since ask(). */
  get isAnswered(): boolean {
    return this.#isAnswered
  }

  /** Begins an exchange: sends `request` as soon as there is a connection. REQUIRES: no exchange runs. */
  ask(request: string, exchange: ExchangeOptions): void {
    const { signal, idleTimeoutMs } = exchange
    this.#exchange = exchange
    this.#isAnswered = false
    this.#request = request
    this.#socket.ref()
    this.#socket.setTimeout(idleTimeoutMs)
    if (idleTimeoutMs === NO_IDLE_TIMEOUT) this.#socket.setKeepAlive(true, KEEP_ALIVE_MS)
    signal.addEventListener('abort', this.#onAbort, { once: true })
    if (signal.aborted) this.#onAbort()
    if (this.#isConnected) this.#send()
  }

  /**
   * Ends an exchange whose answer has been read to its end: the connection waits for the next one, for
   * `idleMs` at most. When the device sends anything meanwhile, it is closed: that would be taken for the next answer.
   */
  rest(idleMs: number): void {
    this.#leaveExchange()
    if (this.#arrived.length > 0 || this.#ended) this.#fail(CLOSED)
    this.#socket.setTimeout(idleMs)
    // A connection that rests does not keep the program running.
    this.#socket.unref()
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

  /** Ends the exchange and the connection with `reason`. */
  abort(reason: unknown): void {
    this.#fail(reason)
  }

  /** Breaks the connection. A read that is not released stays valid. */
  [Symbol.dispose](): void {
    this.#fail(CLOSED)
  }

  #listen(): void {
    const socket = this.#socket
    socket.on('timeout', () => {
      if (this.#isPaused) return
      const limitMs = this.#exchange?.idleTimeoutMs
      this.#fail(limitMs === undefined ? CLOSED : deviceLate(this.device, 'send anything', limitMs))
    })
    socket.on('error', (error) => this.#fail(deviceFailure(this.device, error)))
    socket.on('end', () => this.#end())
    socket.on('close', () => {
      if (this.#target !== undefined) READ_BUFFERS.give(this.#target)
      this.#target = undefined
      this.#end()
    })
  }

  #send(): void {
    const request = this.#request
    this.#request = ''
    if (request === '' || this.#socket.destroyed) return
    // The device may have vanished while the connection was made, or rested.
    const { absence } = this.#peer
    if (absence === undefined) this.#socket.write(request, 'latin1')
    else this.#fail(absence)
  }

  #nextTarget(): Buffer {
    this.#target = takeReadBuffer(this.#size)
    return this.#target
  }

  /** False pauses reading. Node asks for the next buffer in any case. */
  #onRead(bytes: number, buffer: Buffer): boolean {
    this.#target = undefined
    this.#isAnswered = true
    this.#unreleased += 1
    const arrivedMs = performance.now()
    let isReleased = false
    const release = () => {
      if (isReleased) return
      isReleased = true
      this.#size.hasPassed({ bytes, capacity: buffer.byteLength, heldMs: performance.now() - arrivedMs })
      READ_BUFFERS.give(buffer)
      this.#unreleased -= 1
      this.#resume()
    }
    const read = { bytes: buffer.subarray(0, bytes), release }
    if (this.#exchange === undefined) this.#fail(CLOSED)
    if (this.#failure !== undefined) {
      release()
      return false
    }
    this.#arrived.push(read)
    this.#notify()
    if (this.#unreleased < READS_AHEAD) return true
    this.#isPaused = true
    return false
  }

  #resume(): void {
    if (!this.#isPaused || this.#unreleased >= READS_AHEAD) return
    this.#isPaused = false
    if (this.#socket.destroyed) return
    // The time without a read was ours; the device's begins now.
    if (this.#exchange !== undefined) this.#socket.setTimeout(this.#exchange.idleTimeoutMs)
    this.#socket.resume()
  }

  /** The first failure stands. What has arrived and nobody has taken is dropped. */
  #fail(reason: unknown): void {
    this.#failure ??= { reason }
    this.#break()
    for (const read of this.#arrived.splice(0)) read.release()
    this.#notify()
  }

  /**
   * A request that is still on its way to a device that cannot be reached must not arrive later, when
   * others have its place: the kernel forgets it with a reset, not with a regular end. (Node has no
   * reset under TLS, nor before there is a connection, when nothing has been sent. It never closes one that it is
   * to reset while it ends, because the device has: that one needs none.)
   */
  #break(): void {
    const socket = this.#socket
    const isOnItsWay = !this.#isAnswered && !this.#ended && !socket.connecting && !socket.destroyed
    if (isOnItsWay && !(socket instanceof TLSSocket)) socket.resetAndDestroy()
    else socket.destroy()
  }

  #end(): void {
    clearTimeout(this.#connecting)
    this.#leaveExchange()
    this.#ended = true
    this.#notify()
  }

  #leaveExchange(): void {
    this.#exchange?.signal.removeEventListener('abort', this.#onAbort)
    this.#exchange = undefined
  }

  #notify(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}

function isTls({ url }: Device): boolean {
  return url.protocol === 'https:'
}

/** Begins to connect, with all that connections to this device must be made with. */
function connectTo(device: Device, onread: OnReadOpts): Socket {
  const { url, connectOptions } = device
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(url.port) || (isTls(device) ? 443 : 80)
  const options = { host, port, onread, ...connectOptions }
  if (!isTls(device)) return connectTcp(options)
  return connectTls(isIP(host) === 0 ? { ...options, servername: host } : options)
}
