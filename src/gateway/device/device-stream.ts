/** One answer of a device: its head, then the body read by read. */
import { setTimeout as delay } from 'node:timers/promises'
import { type BodyFraming, type FramedPieces, framingFor } from './body-framing.ts'
import type { ConnectionRead, DeviceConnection, ExchangeOptions } from './device-connection.ts'
import { deviceBrokeOff, deviceLate, deviceProtocol } from './device-failure.ts'
import { HeadCollector, hasBody, MalformedAnswer, type ResponseHead } from './response-head.ts'

export interface AnswerOptions extends ExchangeOptions {
  /** The head must be whole by then (absent: who asks has a limit of their own): a device that sends a byte of it now and then is never silent. */
  readonly headTimeoutMs?: number | undefined
  /** Whether the request is a HEAD. */
  readonly isHead?: boolean | undefined
  /** Takes over a connection that has carried a whole answer and can carry another; else it is broken. */
  readonly onReusable?: ((connection: DeviceConnection) => void) | undefined
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
  readonly #onReusable: AnswerOptions['onReusable']
  /** The bytes of the body that came with the head, until they are taken. */
  #first: ConnectionRead | undefined
  #isDisposed = false

  /**
   * Sends the request and reads the head of its answer; the body is the caller's to read and the
   * stream the caller's to dispose. Fails with device-unreachable, device-timeout, device-protocol
   * or the signal's reason; the connection is broken then.
   */
  static async open(
    connection: DeviceConnection,
    request: string,
    options: AnswerOptions,
  ): Promise<DeviceStream> {
    const { device } = connection
    const { headTimeoutMs = 0 } = options
    const late = () => connection.abort(deviceLate(device, 'begin to answer', headTimeoutMs))
    const timer = headTimeoutMs > 0 ? setTimeout(late, headTimeoutMs) : undefined
    try {
      connection.ask(request, options)
      return new DeviceStream(connection, await readHead(connection), options)
    } catch (error) {
      connection[Symbol.dispose]()
      throw error instanceof MalformedAnswer ? deviceProtocol(device, error.message) : error
    } finally {
      clearTimeout(timer)
    }
  }

  private constructor(
    connection: DeviceConnection,
    { head, rest }: FoundHead,
    { isHead = false, onReusable }: AnswerOptions,
  ) {
    this.head = head
    this.#device = connection.device
    this.#connection = connection
    this.#framing = framingFor(isHead || !hasBody(head) ? 0 : head.framing)
    this.#onReusable = onReusable
    this.#first = rest
  }

  /** Whether the body has ended by its framing; what follows it is no part of it. */
  get isWhole(): boolean {
    return this.#framing.ended
  }

  /** The trailers behind the body; they are complete after the last read. */
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

  /** Gives the read's part of the body to the sink; returns whether more may follow. */
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

  /** Breaks the connection, or gives it on (`onReusable`). Parts that are not released stay valid. Idempotent. */
  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#dropFirst()
    const isReusable = this.isWhole && this.#framing.fault === undefined && this.head.keepsConnection
    if (isReusable && this.#onReusable !== undefined) this.#onReusable(this.#connection)
    else this.#connection[Symbol.dispose]()
  }

  /** Drops what came with the head when nobody read it; it may hold more than the answer should have. */
  #dropFirst(): void {
    const first = this.#first
    this.#first = undefined
    if (first !== undefined) this.#walk(first)?.release()
  }
}

interface FoundHead {
  readonly head: ResponseHead
  readonly rest: ConnectionRead
}

/** The final answer's head, and what came behind it in the same read. */
async function readHead(connection: DeviceConnection): Promise<FoundHead> {
  const collector = new HeadCollector()
  for (;;) {
    const read = await connection.next()
    if (read === undefined) throw deviceBrokeOff(connection.device)
    const found = collector.take(read.bytes)
    if (found !== undefined) {
      const rest = { bytes: read.bytes.subarray(found.bodyFrom), release: read.release }
      return { head: found.head, rest }
    }
    read.release()
  }
}
