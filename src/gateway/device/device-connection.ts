/**
 * A connection to a device, read into pooled buffers: what Node's streams do per chunk (allocate a buffer, emit
 * events) costs three times as much as moving the bytes. (Reading the socket in C++ would save a tenth of the time of
 * a merge: too little for a path that TLS cannot use.) The connection carries one exchange after another; an exchange
 * is a request and everything that the device sends in response.
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
  /** Ends the connection at once; reads then fail with the signal's reason. */
  readonly signal: AbortSignal
  /** A device that sends nothing for this long while we are reading has failed. Or NO_IDLE_TIMEOUT. */
  readonly idleTimeoutMs: number
}

/** Only TCP keep-alive detects that the device is gone. */
export const NO_IDLE_TIMEOUT = 0
const KEEP_ALIVE_MS = 15_000
const CLOSED = new CapfleetError('draining', 'the connection to the device was closed')

/** The result of one read. Release it when `bytes` is no longer needed, so that the buffer is reused. */
export interface ConnectionRead {
  readonly bytes: Buffer
  release(): void
}

/** Number of unreleased reads at which reading pauses. TLS may deliver a few more small ones. */
const READS_AHEAD = 2

export class DeviceConnection implements Disposable {
  /** Name of the device. */
  readonly device: string
  readonly #peer: Device
  readonly #socket: Socket
  readonly #size: ReadSize
  readonly #connecting: NodeJS.Timeout
  readonly #onAbort = (): void => this.#fail(this.#exchange?.signal.reason)
  #isConnected = false
  /** The current exchange, or undefined while the connection is idle. */
  #exchange: ExchangeOptions | undefined
  /** The request while it waits for the connection; empty once sent. */
  #request = ''
  /** Whether the device has sent anything in this exchange. */
  #isAnswered = false
  #arrived: ConnectionRead[] = []
  #unreleased = 0
  #isPaused = false
  /** The buffer for the next read. */
  #target: Buffer | undefined
  #ended = false
  #failure: { readonly reason: unknown } | undefined
  #wake: (() => void) | undefined

  /**
   * Starts to connect. Fails with device-unreachable if the device has vanished. `onClose` is called when the
   * connection has ended for whatever reason.
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
      // A process that was suspended must not send the request after the limit either.
      if (performance.now() > lastMs) late()
      else this.#send()
    })
    this.#socket.once('close', onClose)
    this.#listen()
  }

  /** Whether, as far as we know, a request can be sent over the connection. */
  get isOpen(): boolean {
    return !this.#ended && this.#failure === undefined
  }

  /** Whether the device has sent anything since ask(). */
  get isAnswered(): boolean {
    return this.#isAnswered
  }

  /** Starts an exchange: sends `request` as soon as the connection is established. REQUIRES: no exchange is running. */
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
   * Ends an exchange whose answer has been read completely: the connection becomes idle, for at most `idleMs`. If the
   * device sends anything meanwhile, the connection is closed, because that would be mistaken for the next answer.
   */
  rest(idleMs: number): void {
    this.#leaveExchange()
    if (this.#arrived.length > 0 || this.#ended) this.#fail(CLOSED)
    this.#socket.setTimeout(idleMs)
    // An idle connection does not keep the process running.
    this.#socket.unref()
  }

  /** Returns the next read if it has already arrived. Must not be called while a next() is pending. */
  take(): ConnectionRead | undefined {
    return this.#arrived.shift()
  }

  /**
   * The bytes of the next read, or undefined once the device has closed its side. Fails with device-unreachable,
   * device-timeout or the signal's reason. One call at a time.
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
   * Passes every read to `sink` as it arrives, without a promise in between. Resolves when the device has closed its
   * side or the sink returns false. Fails like next(), and with what the sink throws. Must not be combined with
   * next().
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

  /** Closes the connection. Unreleased reads stay valid. */
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
    // The device may have vanished while the connection was being established or was idle.
    const { absence } = this.#peer
    if (absence === undefined) this.#socket.write(request, 'latin1')
    else this.#fail(absence)
  }

  #nextTarget(): Buffer {
    this.#target = takeReadBuffer(this.#size)
    return this.#target
  }

  /** Returning false pauses reading. Node asks for the next buffer in any case. */
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
    // Until now we were not reading; the device's time starts here.
    if (this.#exchange !== undefined) this.#socket.setTimeout(this.#exchange.idleTimeoutMs)
    this.#socket.resume()
  }

  /** The first failure counts. Reads that have arrived but were not taken are dropped. */
  #fail(reason: unknown): void {
    this.#failure ??= { reason }
    this.#break()
    for (const read of this.#arrived.splice(0)) read.release()
    this.#notify()
  }

  /**
   * A request still in transit to an unreachable device must not arrive later, when others have its place. The kernel
   * discards it on a reset, but not on a regular close. (Node cannot reset under TLS, nor before there is a
   * connection, when nothing has been sent. A socket to be reset while it is ending because the device has closed its
   * side would never be closed by Node; that case needs no reset.)
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

/** Starts to connect, with all options that connections to this device need. */
function connectTo(device: Device, onread: OnReadOpts): Socket {
  const { url, connectOptions } = device
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(url.port) || (isTls(device) ? 443 : 80)
  const options = { host, port, onread, ...connectOptions }
  if (!isTls(device)) return connectTcp(options)
  return connectTls(isIP(host) === 0 ? { ...options, servername: host } : options)
}
