/**
 * A download from one device: its bytes go from the buffer they were read into straight to the
 * client's socket, chunk headers included. Only the end of the body is ours, when it is known to be
 * whole, and the chunks of a body that was parked and is read again.
 */
import { createHash, type Hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { CapfleetError } from '../base/error.ts'
import { framedAfter, NO_OPEN_CHUNK } from '../device/body-framing.ts'
import type { BodyRead } from '../device/device-stream.ts'
import { cutResponse } from '../http/cut-response.ts'
import { RawResponse } from '../http/raw-response.ts'
import { resetConnection } from '../http/reset-connection.ts'
import { passedTrailers, TRAILER_NAMES } from './passed-trailers.ts'
import { bodyChanged, readPastSent } from './read-past-sent.ts'
import type { Checkpoint } from './receipt.ts'
import type { Source } from './source.ts'

/** Opened with `isRelayed`; nothing of its body has been read. */
export type RelaySource = Pick<Source, 'device' | 'body' | 'trailers'>

export interface RelayExchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Without framing and trailers. Not used when the head is written already, as chunks. */
  readonly head: Readonly<Record<string, string>>
  readonly requestId: string
  /** Cuts the download; must be the signal that the source was opened with. */
  readonly signal: AbortSignal
  /** Whether to hash the body. */
  readonly digest: boolean
  readonly wantsTrailers: boolean
  /** A client that takes nothing for so long is cut off. */
  readonly clientIdleTimeoutMs: number
  /** Called with the body's bytes as they are written; `piece` is valid during the call. */
  readonly onBytes: (bytes: number, piece: Uint8Array) => void
  /** Called when the body is whole, before the client can see its end. */
  readonly onWhole?: (end: RelayEnd) => void
  /** Called when the download is going to be cut, before the client takes its time to read the rest. */
  readonly onCut?: (reason: unknown) => void
  /** Called when bytes begin to pass; what it gives is disposed of when the body has been read. */
  readonly watch?: (relay: ParkableRelay) => Disposable
}

export interface ParkableRelay {
  /**
   * Breaks the device's stream; the client stays, and the relay waits for goOn(). REQUIRES: what was
   * sent has been read again since the last goOn().
   */
  park(): void
  /** Goes on with the same body, made again, behind what the client has got. */
  goOn(source: RelaySource, sent: Checkpoint): void
}

export interface RelayEnd {
  readonly bytes: bigint
  /** Of the device. */
  readonly trailers: Readonly<Record<string, string>>
  /** In hexadecimal, when asked for. */
  readonly sha256: string | undefined
}

/**
 * Answers with the device's body; resolves when all of it has left. When it cannot be completed, the
 * client's connection is cut inside an element of the format, and this rejects with what went wrong.
 * The source stays the caller's to dispose.
 */
export async function relayDownload(source: RelaySource, exchange: RelayExchange): Promise<RelayEnd> {
  const { res, signal, clientIdleTimeoutMs } = exchange
  let isIdle = false
  const relay = new Relay(source, exchange)
  res.setTimeout(clientIdleTimeoutMs, () => {
    // Without anything to take, it is the device that is slow.
    if (!relay.isBehind) return
    isIdle = true
    relay.stopReading()
    // Such a client need not be waited for.
    if (res.socket !== null) resetConnection(res.socket)
  })
  try {
    return await relay.run()
  } catch (error) {
    const reason = isIdle ? CLIENT_IDLE : signal.aborted ? signal.reason : error
    await relay.cut(reason)
    throw reason
  }
}

const CLIENT_IDLE = new CapfleetError('client-timeout', 'the client took nothing for too long')

interface MadeAgain {
  readonly source: RelaySource
  readonly sent: Checkpoint
}

class Relay implements ParkableRelay {
  #source: RelaySource
  readonly #exchange: RelayExchange
  readonly #hash: Hash | undefined
  #response: RawResponse | undefined
  #bytes = 0n
  /** Of the chunks that were written. */
  #open = NO_OPEN_CHUNK
  /** Whether the body is made again: its chunks begin where they please. */
  #isJoined = false
  /** While it is parked: what it waits for. */
  #parked: PromiseWithResolvers<MadeAgain> | undefined

  constructor(source: RelaySource, exchange: RelayExchange) {
    this.#source = source
    this.#exchange = exchange
    this.#hash = exchange.digest ? createHash('sha256') : undefined
  }

  get isBehind(): boolean {
    return this.#response?.isBehind ?? false
  }

  async run(): Promise<RelayEnd> {
    const { res, head, wantsTrailers } = this.#exchange
    const announced = wantsTrailers ? { ...head, Trailer: TRAILER_NAMES } : head
    this.#response = new RawResponse(res, announced)
    await this.#passAll(this.#response)
    const sha256 = this.#hash?.digest('hex')
    const end = { bytes: this.#bytes, trailers: this.#source.trailers, sha256 }
    this.#exchange.onWhole?.(end)
    await this.#response.end(wantsTrailers ? this.#trailers(sha256) : {})
    return end
  }

  park(): void {
    const { signal } = this.#exchange
    const parked = Promise.withResolvers<MadeAgain>()
    // It may fail before it is waited for.
    parked.promise.catch(() => undefined)
    signal.addEventListener('abort', () => parked.reject(signal.reason), { once: true })
    this.#parked = parked
    this.stopReading()
  }

  goOn(source: RelaySource, sent: Checkpoint): void {
    this.#parked?.resolve({ source, sent })
  }

  /** What was read already still goes out. */
  stopReading(): void {
    this.#source.body[Symbol.dispose]()
  }

  /** Breaks the client's connection so that the cut is seen. */
  async cut(reason: unknown): Promise<void> {
    const { res, onCut } = this.#exchange
    const mark = this.#source.body.cutMark()
    // The device is not needed any more, however long the client takes to read what was sent.
    this.stopReading()
    onCut?.(reason)
    if (this.#response === undefined) return void res.destroy()
    const pieces = this.#response.isChunked ? framedAfter(this.#open, [mark]).framed : [mark]
    await cutResponse(res, Buffer.concat(pieces), { isFramed: true })
  }

  /** All of the body, with as many stops as there are. */
  async #passAll(response: RawResponse): Promise<void> {
    using _watch = this.#exchange.watch?.(this)
    for (;;) {
      try {
        await this.#pass(response)
        break
      } catch (error) {
        if (this.#parked === undefined) throw error
        const madeAgain = await this.#parked.promise
        this.#parked = undefined
        await this.#rejoin(response, madeAgain)
      }
    }
    this.#closeChunk(response)
  }

  /** What one source has. */
  async #pass(response: RawResponse): Promise<void> {
    await this.#source.body.pour((read) => {
      if (this.#isJoined) return this.#write(response, read)
      for (const piece of read.data) this.#count(piece)
      this.#open = read.open
      response.write(response.isChunked ? read.framed : read.data, read.release)
    })
  }

  async #rejoin(response: RawResponse, { source, sent }: MadeAgain): Promise<void> {
    const first = await readPastSent(source, sent)
    this.#source = source
    this.#isJoined = true
    this.#write(response, first)
  }

  /** In chunks of our own. */
  #write(response: RawResponse, { data, release }: Pick<BodyRead, 'data' | 'release'>): void {
    for (const piece of data) this.#count(piece)
    const { framed, open } = framedAfter(this.#open, data)
    this.#open = open
    response.write(response.isChunked ? framed : data, release)
  }

  /** Behind the whole body; the device may have promised more of it before than it holds now. */
  #closeChunk(response: RawResponse): void {
    if (!response.isChunked) return
    const { dataBytes, lineEnd } = this.#open
    if (dataBytes > 0) throw bodyChanged(this.#source.device)
    if (lineEnd !== '') response.write([Buffer.from(lineEnd)], () => undefined)
  }

  #count(piece: Buffer): void {
    this.#hash?.update(piece)
    this.#bytes += BigInt(piece.length)
    this.#exchange.onBytes(piece.length, piece)
  }

  #trailers(sha256: string | undefined): Record<string, string> {
    const passed = passedTrailers(this.#source.trailers)
    return {
      ...passed,
      'Capfleet-Complete': '1',
      'Capfleet-Status': passed['Capfleet-Truncated'] === '1' ? 'truncated' : 'complete',
      'Capfleet-Bytes': String(this.#bytes),
      ...(sha256 === undefined ? {} : { 'Capfleet-Sha256': sha256 }),
    }
  }
}
