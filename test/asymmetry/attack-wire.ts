/** The attacker's connections: raw sockets with little overhead, which count everything that is sent and received. */
import { createConnection, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { type Answer, AnswerReader } from './answer-reader.ts'

/** Another address than that of honest users, so that a limit per address can distinguish them. */
const ATTACKER_ADDRESS = '127.0.0.2'
const CONNECT_LIMIT_MS = 5_000
/** A successful answer to one of these is a stream of packets. */
const STREAM_PATH = /^GET \S*\/pcap\/(timerange|single|splittime)\?/

export interface ConnectOptions {
  /** Does not use TLS, even with a server that does. */
  readonly isRaw?: boolean
}

export class AttackWire {
  readonly #url: URL
  readonly #open = new Set<AttackConnection>()
  #isClosed = false
  #connections = 0
  #sentBytes = 0
  #receivedBytes = 0
  #streamMs = 0

  constructor(url: string) {
    this.#url = new URL(url)
  }

  /** undefined if the connection is refused, or the attack is over. */
  async connect(options: ConnectOptions = {}): Promise<AttackConnection | undefined> {
    if (this.#isClosed) return undefined
    const connection = new AttackConnection(...this.#sockets(options))
    this.#connections += 1
    this.#open.add(connection)
    void connection.closed.then(() => this.#forget(connection))
    return (await connection.isConnected) ? connection : undefined
  }

  /** Adds traffic that did not use a connection of this wire. */
  countSent(bytes: number): void {
    this.#sentBytes += bytes
  }

  /** Ends all connections, and allows no new ones. */
  close(): void {
    this.#isClosed = true
    for (const connection of this.#open) connection.close()
  }

  /** REQUIRES: close() was called. */
  async spent(): Promise<{
    readonly connections: number
    readonly sentBytes: number
    readonly receivedBytes: number
    readonly streamMs: number
  }> {
    await Promise.all([...this.#open].map(({ closed }) => closed))
    return {
      connections: this.#connections,
      sentBytes: this.#sentBytes,
      receivedBytes: this.#receivedBytes,
      streamMs: this.#streamMs,
    }
  }

  /** The socket to use, and the one below it that carries its bytes. */
  #sockets({ isRaw = false }: ConnectOptions): readonly [Socket, Socket] {
    const port = Number(this.#url.port)
    const carrier = createConnection({ host: this.#url.hostname, port, localAddress: ATTACKER_ADDRESS })
    carrier.on('error', () => undefined)
    if (isRaw || this.#url.protocol === 'http:') return [carrier, carrier]
    return [connectTls({ socket: carrier, rejectUnauthorized: false }), carrier]
  }

  #forget(connection: AttackConnection): void {
    this.#open.delete(connection)
    this.#sentBytes += connection.sentBytes
    this.#receivedBytes += connection.receivedBytes
    this.#streamMs += connection.streamMs
  }
}

export class AttackConnection {
  /** False if it was closed first. */
  readonly isConnected: Promise<boolean>
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #carrier: Socket
  #reader: AnswerReader | undefined
  #streamMs = 0
  #streamBeganMs: number | undefined

  constructor(socket: Socket, carrier: Socket) {
    this.#socket = socket
    this.#carrier = carrier
    socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    const connected = new Promise<boolean>((resolve) =>
      socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => resolve(true)),
    )
    const limit = setTimeout(() => socket.destroy(), CONNECT_LIMIT_MS)
    this.isConnected = Promise.race([connected, this.closed.then(() => false)])
    void this.isConnected.finally(() => clearTimeout(limit))
    // Unrequested data is discarded, so that the end of the connection is noticed.
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
  }

  get sentBytes(): number {
    // Data that the other side never received does not count as sent.
    return Math.max(0, this.#carrier.bytesWritten - this.#carrier.writableLength)
  }

  get receivedBytes(): number {
    return this.#carrier.bytesRead
  }

  get streamMs(): number {
    const runningMs = this.#streamBeganMs === undefined ? 0 : performance.now() - this.#streamBeganMs
    return this.#streamMs + runningMs
  }

  send(bytes: string | Uint8Array): void {
    if (!this.#socket.destroyed) this.#socket.write(bytes)
  }

  /** Sends, and waits until the data has left; false if the connection is closed. */
  async sendAll(bytes: string | Uint8Array): Promise<boolean> {
    if (this.#socket.destroyed) return false
    const sent = new Promise<void>((resolve) => this.#socket.write(bytes, () => resolve()))
    await Promise.race([sent, this.closed])
    return !this.#socket.destroyed
  }

  /** Stops reading, as a client that hangs. */
  stopReading(): void {
    this.#socket.pause()
  }

  /** Waits for the whole answer; undefined if the connection is closed before its end. One at a time. */
  async ask(request: string, keepsBody = false): Promise<Answer | undefined> {
    const isStream = STREAM_PATH.test(request)
    const reader = new AnswerReader(keepsBody, ({ status }) => {
      if (isStream && status === 200) this.#streamBeganMs = performance.now()
    })
    this.#reader = reader
    this.send(request)
    const answer = await Promise.race([reader.answer, this.closed.then(() => undefined)])
    this.#streamMs = this.streamMs
    this.#streamBeganMs = undefined
    this.#reader = undefined
    return answer
  }

  close(): void {
    this.#streamMs = this.streamMs
    this.#streamBeganMs = undefined
    this.#socket.destroy()
  }

  #take(bytes: Buffer): void {
    try {
      this.#reader?.feed(bytes)
    } catch {
      this.#socket.destroy()
    }
  }
}
