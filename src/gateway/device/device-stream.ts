/** One answer of a device: its head, then the body read by read. */
import { setTimeout as delay } from 'node:timers/promises'
import { type BodyFraming, type FramedPieces, framingFor } from './body-framing.ts'
import type { ConnectionRead, DeviceConnection, ExchangeOptions } from './device-connection.ts'
import { deviceBrokeOff, deviceLate, deviceProtocol } from './device-failure.ts'
import { HeadCollector, hasBody, MalformedAnswer, type ResponseHead } from './response-head.ts'

export interface AnswerOptions extends ExchangeOptions {
  /**
   * The response head must be complete within this time, because a device that sends a byte of it now and then is
   * never silent. Absent if the caller has its own limit.
   */
  readonly headTimeoutMs?: number | undefined
  /** Whether the request is a HEAD. */
  readonly isHead?: boolean | undefined
  /** Accepts a connection that has carried a complete answer and can be reused; otherwise it is closed. */
  readonly onReusable?: ((connection: DeviceConnection) => void) | undefined
}

/** The part of the body in one read. Release it when the pieces are no longer needed. */
export interface BodyRead extends FramedPieces {
  release(): void
}

/** How long a device that did not announce a completion trailer may take to close after the end of its answer. */
const CLOSE_LIMIT_MS = 1_000

export class DeviceStream implements Disposable {
  readonly head: ResponseHead
  readonly #device: string
  readonly #connection: DeviceConnection
  readonly #framing: BodyFraming
  readonly #onReusable: AnswerOptions['onReusable']
  /** The bytes of the body that arrived with the head, until they are taken. */
  #first: ConnectionRead | undefined
  #isDisposed = false

  /**
   * Sends the request and reads the head of its answer; the caller must read the body and dispose the stream. Fails
   * with device-unreachable, device-timeout, device-protocol or the signal's reason, and then closes the connection.
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

  /** Whether the framing has marked the end of the body; what follows is not part of it. */
  get isWhole(): boolean {
    return this.#framing.ended
  }

  /** The trailers after the body; complete after the last read. */
  get trailers(): Readonly<Record<string, string>> {
    return this.#framing.trailers
  }

  /**
   * The next part of the body, or undefined after its regular end. Reading pauses while two parts are unreleased.
   * Fails like open, and if the body breaks off or its framing is malformed.
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

  /** Returns the next part if it has already arrived, else undefined: then call next(). Fails like next(). */
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
   * Passes every remaining part of the body to `sink` as it arrives; resolves at its regular end. Fails like next(),
   * and with what the sink throws. Must not be combined with next().
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
   * For an end that is confirmed by nothing but the framing: waits for the device to close the connection, as it was
   * asked to. Fails with device-protocol if it sends more instead. REQUIRES: the body has ended.
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

  /** Passes the read's part of the body to the sink; returns whether more may follow. */
  #pass(read: ConnectionRead, sink: (read: BodyRead) => void): boolean {
    const body = this.#walk(read)
    if (body !== undefined) sink(body)
    this.#checkFraming()
    return !this.#framing.ended
  }

  /** The part of the body in the read; if there is none, releases it and returns undefined. */
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

  /** Closes the connection or passes it to `onReusable`. Unreleased parts stay valid. Idempotent. */
  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#dropFirst()
    const isReusable = this.isWhole && this.#framing.fault === undefined && this.head.keepsConnection
    if (isReusable && this.#onReusable !== undefined) this.#onReusable(this.#connection)
    else this.#connection[Symbol.dispose]()
  }

  /** Drops unread bytes that arrived with the head; they may include more than the answer should have. */
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

/** The head of the final answer, and what followed it in the same read. */
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
