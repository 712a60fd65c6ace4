/** One answer of a device over a connection of its own: head, then the body read by read. */
import { setTimeout as delay } from 'node:timers/promises'
import { type BodyFraming, type FramedPieces, framingFor } from './body-framing.ts'
import type { Device } from './device.ts'
import { type ConnectionOptions, type ConnectionRead, DeviceConnection } from './device-connection.ts'
import { deviceBrokeOff, deviceProtocol } from './device-failure.ts'
import { HeadCollector } from './head-collector.ts'
import { MalformedAnswer, type ResponseHead } from './response-head.ts'

/** A GET. */
export interface StreamRequest {
  /** Path and query. */
  readonly target: string
  /** Name of the lease under which the stream is opened. */
  readonly lease: string
  /** Label of whoever asked for the download. */
  readonly caller: string
}

/** What one read brought of the body. Release it when the pieces are no longer looked at. */
export interface BodyRead extends FramedPieces {
  release(): void
}

/** How long a device that announced no completion may take to close after the end of its answer. */
const CLOSE_LIMIT_MS = 1_000

export class DeviceStream implements Disposable {
  readonly head: ResponseHead
  readonly #device: string
  readonly #connection: DeviceConnection
  readonly #framing: BodyFraming
  /** What came with the head. */
  #first: ConnectionRead | undefined

  /**
   * Sends the request and reads the head of its answer; the body is the caller's to read and the
   * stream the caller's to dispose. Fails with device-unreachable, device-timeout, device-protocol
   * or the signal's reason.
   */
  static async open(
    device: Device,
    request: StreamRequest,
    options: ConnectionOptions,
  ): Promise<DeviceStream> {
    const connection = new DeviceConnection(device, requestFor(device, request), options)
    try {
      const { head, rest } = await readHead(connection, device.name)
      return new DeviceStream(device.name, connection, head, rest)
    } catch (error) {
      connection[Symbol.dispose]()
      throw ours(device.name, error)
    }
  }

  private constructor(
    device: string,
    connection: DeviceConnection,
    head: ResponseHead,
    rest: ConnectionRead,
  ) {
    this.head = head
    this.#device = device
    this.#connection = connection
    this.#framing = framingFor(head.framing)
    this.#first = rest
  }

  /** After the last read. */
  get trailers(): Readonly<Record<string, string>> {
    return this.#framing.trailers
  }

  /**
   * The next part of the body; undefined after its regular end. Reading pauses while two parts are
   * not released. Fails as open does, when the body breaks off or its framing is malformed.
   */
  async next(): Promise<BodyRead | undefined> {
    for (;;) {
      const arrived = this.take()
      if (arrived !== undefined) return arrived
      const read = this.#framing.ended ? undefined : await this.#connection.next()
      if (read === undefined) {
        if (this.#framing.closed()) return undefined
        throw deviceBrokeOff(this.#device)
      }
      const body = this.#walk(read)
      if (body !== undefined) return body
    }
  }

  /** The next part when it is here already; undefined: ask next(). Fails as next() does. */
  take(): BodyRead | undefined {
    for (;;) {
      this.#checkFraming()
      const read = this.#first ?? (this.#framing.ended ? undefined : this.#connection.take())
      this.#first = undefined
      if (read === undefined) return undefined
      const body = this.#walk(read)
      if (body !== undefined) return body
    }
  }

  /**
   * Hands every part of the body from here on to `sink` as it comes; resolves at its regular end.
   * Fails as next() does, and with what the sink throws. Not together with next().
   */
  async pour(sink: (read: BodyRead) => void): Promise<void> {
    this.#checkFraming()
    const first = this.#first
    this.#first = undefined
    const take = (read: ConnectionRead) => this.#pass(read, sink)
    if (first === undefined ? !this.#framing.ended : take(first)) await this.#connection.pour(take)
    if (!this.#framing.closed()) throw deviceBrokeOff(this.#device)
  }

  /**
   * For an end that nothing but the framing vouches for: waits for the device to close, as it was
   * asked to. Fails with device-protocol when it sends more instead. REQUIRES: the body has ended.
   */
  async confirmEnd(): Promise<void> {
    const quiet = new AbortController()
    // A connection that is reset now has nothing to add either.
    const more = await Promise.race([
      this.#connection.next().catch(() => undefined),
      delay(CLOSE_LIMIT_MS, undefined, { signal: quiet.signal }).catch(() => undefined),
    ])
    quiet.abort()
    if (more !== undefined) throw deviceProtocol(this.#device, 'sent bytes after the end of its answer')
  }

  /** Whether more may follow. */
  #pass(read: ConnectionRead, sink: (read: BodyRead) => void): boolean {
    const body = this.#walk(read)
    if (body !== undefined) sink(body)
    this.#checkFraming()
    return !this.#framing.ended
  }

  /** What the read brought of the body; undefined, and released, when that is nothing. */
  #walk({ bytes, release }: ConnectionRead): BodyRead | undefined {
    const { data, framed, open } = this.#framing.walk(bytes)
    if (framed.length > 0 || data.length > 0) return { data, framed, open, release }
    release()
    return undefined
  }

  #checkFraming(): void {
    const { fault } = this.#framing
    if (fault !== undefined) throw deviceProtocol(this.#device, fault.message)
  }

  /** Breaks the connection; parts that are not released stay valid. */
  [Symbol.dispose](): void {
    this.#first?.release()
    this.#first = undefined
    this.#connection[Symbol.dispose]()
  }
}

function requestFor(device: Device, { target, lease, caller }: StreamRequest): string {
  const path = device.pathOf(target)
  // The parts come from our own parsers; this is the last wall against a split request.
  if (!/^\/[\x21-\x7e]*$/.test(path)) throw new Error(`not a request target: ${JSON.stringify(path)}`)
  if (!/^[\x21-\x7e]+$/.test(lease)) throw new Error(`not the name of a lease: ${JSON.stringify(lease)}`)
  if (!/^[\x21-\x7e]+$/.test(caller)) throw new Error(`not the label of a caller: ${JSON.stringify(caller)}`)
  const headers = [
    `host: ${device.url.host}`,
    `authorization: ${device.authorization()}`,
    `capfleet-lease: ${lease}`,
    `capfleet-caller: ${caller}`,
    'te: trailers',
    'user-agent: capfleet-gateway',
    'connection: close, te',
  ]
  return `GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
}

/** The final answer's head, and what came behind it in the same read. */
async function readHead(
  connection: DeviceConnection,
  device: string,
): Promise<{ head: ResponseHead; rest: ConnectionRead }> {
  const collector = new HeadCollector()
  for (;;) {
    const read = await connection.next()
    if (read === undefined) throw deviceBrokeOff(device)
    const found = collector.take(read.bytes)
    if (found !== undefined) {
      const rest = { bytes: read.bytes.subarray(found.bodyFrom), release: read.release }
      return { head: found.head, rest }
    }
    read.release()
  }
}

function ours(device: string, error: unknown): unknown {
  return error instanceof MalformedAnswer ? deviceProtocol(device, error.message) : error
}
