/**
 * A download from one device: its bytes go from the buffer they were read into straight to the
 * client's socket, chunk headers included. Only the end of the body is ours, when it is known to be
 * whole.
 */
import { createHash, type Hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { cutResponse } from '../base/cut-response.ts'
import { CapfleetError } from '../base/error.ts'
import { RawResponse } from '../base/raw-response.ts'
import { resetConnection } from '../base/reset-connection.ts'
import { passedTrailers, TRAILER_NAMES } from './passed-trailers.ts'
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
  const idle = new AbortController()
  const relay = new Relay(source, exchange)
  res.setTimeout(clientIdleTimeoutMs, () => {
    // Without anything to take, it is the device that is slow.
    if (!relay.isBehind) return
    idle.abort(CLIENT_IDLE)
    source.body[Symbol.dispose]()
    // Such a client need not be waited for.
    if (res.socket !== null) resetConnection(res.socket)
  })
  try {
    return await relay.run()
  } catch (error) {
    const aborted = [idle.signal, signal].find((one) => one.aborted)
    const reason = aborted === undefined ? error : aborted.reason
    await relay.cut(reason)
    throw reason
  }
}

const CLIENT_IDLE = new CapfleetError('client-timeout', 'the client took nothing for too long')

class Relay {
  readonly #source: RelaySource
  readonly #exchange: RelayExchange
  readonly #hash: Hash | undefined
  #response: RawResponse | undefined
  #bytes = 0n

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
    const { body } = this.#source
    const announced = wantsTrailers ? { ...head, Trailer: TRAILER_NAMES } : head
    this.#response = new RawResponse(res, announced)
    const { isChunked } = this.#response
    for (let read = await body.next(); read !== undefined; read = await body.next()) {
      for (const piece of read.data) this.#count(piece)
      this.#response.write(isChunked ? read.framed : read.data, read.release)
    }
    const sha256 = this.#hash?.digest('hex')
    const end = { bytes: this.#bytes, trailers: this.#source.trailers, sha256 }
    this.#exchange.onWhole?.(end)
    await this.#response.end(wantsTrailers ? this.#trailers(sha256) : {})
    return end
  }

  /** Breaks the client's connection so that the cut is seen. */
  async cut(reason: unknown): Promise<void> {
    const { res, onCut } = this.#exchange
    const { body } = this.#source
    const mark = body.cutMark()
    // The device is not needed any more, however long the client takes to read what was sent.
    body[Symbol.dispose]()
    onCut?.(reason)
    if (this.#response === undefined) res.destroy()
    else await cutResponse(res, this.#response.isChunked ? body.frame(mark) : mark, { isFramed: true })
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
