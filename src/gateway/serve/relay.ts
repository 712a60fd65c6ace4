/**
 * A download from one device: its bytes go from the buffer they were read into straight to the client's socket,
 * including chunk headers. We only write the end of the body, once it is known to be complete, and the chunks of a
 * body that was parked and continues in another stream.
 */
import type { ServerResponse } from 'node:http'
import { CapfleetError } from '../../shared/base/error.ts'
import { cutResponse } from '../../shared/http/cut-response.ts'
import { RawResponse } from '../../shared/http/raw-response.ts'
import { resetConnection } from '../../shared/http/reset-connection.ts'
import { framedAfter, NO_OPEN_CHUNK } from '../device/body-framing.ts'
import type { Body, BodyPart } from '../fetch/body/body.ts'

/** A body that can be poured, of which nothing has been returned. */
export type PouredBody = Pick<Body, 'cutMark' | typeof Symbol.dispose> & Required<Pick<Body, 'pour'>>

export interface RelayExchange {
  readonly res: ServerResponse
  /** The headers of the answer, without those that frame its body. */
  readonly head: Readonly<Record<string, string>>
  /** Cuts the download; must be the signal that the streams were opened with. */
  readonly signal: AbortSignal
  /** A client that accepts nothing for this long is cut off. */
  readonly clientIdleTimeoutMs: number
  /** Receives the body's bytes as they are written; `piece` is valid during the call. */
  readonly onPiece: (piece: Uint8Array) => void
  /** Called when the device is no longer needed; the client may take its time to read the rest. */
  readonly onRead: () => void
  /** Called when the body is complete, before the client can see its end; returns the trailers. */
  readonly onWhole: () => Promise<Readonly<Record<string, string>>>
  /** Called when the download is about to be cut, before the client takes its time to read the rest. */
  readonly onCut: (reason: unknown) => void
  /** See CutOptions.onHanded. */
  readonly onHanded: () => void
}

export const CLIENT_IDLE = new CapfleetError('client-timeout', 'the client read nothing for too long')

/**
 * Answers with the body; resolves when all of it has been sent. If it cannot be completed, the client's connection is
 * cut inside an element of the format, and this rejects with the cause.
 */
export async function relayDownload(body: PouredBody, exchange: RelayExchange): Promise<void> {
  const { res, signal, clientIdleTimeoutMs } = exchange
  let isIdle = false
  const relay = new Relay(body, exchange)
  res.setTimeout(clientIdleTimeoutMs, () => {
    // If there is nothing for the client to read, it is the device that is slow.
    if (!relay.isBehind) return
    isIdle = true
    body[Symbol.dispose]()
    // Reset: there is no point in waiting until such a client has read what was sent.
    if (res.socket !== null) resetConnection(res.socket)
  })
  try {
    await relay.run()
  } catch (error) {
    const reason = isIdle ? CLIENT_IDLE : signal.aborted ? signal.reason : error
    await relay.cut(reason)
    throw reason
  }
}

class Relay {
  readonly #body: PouredBody
  readonly #exchange: RelayExchange
  #response: RawResponse | undefined
  /** The chunk that is open after what was written. */
  #open = NO_OPEN_CHUNK

  constructor(body: PouredBody, exchange: RelayExchange) {
    this.#body = body
    this.#exchange = exchange
  }

  get isBehind(): boolean {
    return this.#response?.isBehind ?? false
  }

  async run(): Promise<void> {
    const { res, head, onRead, onWhole } = this.#exchange
    const response = new RawResponse(res, head)
    this.#response = response
    await this.#body.pour((part) => this.#write(response, part))
    onRead()
    this.#closeChunk(response)
    await response.end(await onWhole())
  }

  /** Breaks the client's connection in a way that makes the cut visible. */
  async cut(reason: unknown): Promise<void> {
    const { res, onCut, onHanded } = this.#exchange
    const mark = this.#body.cutMark()
    // The device is no longer needed, however long the client takes to read what was sent.
    this.#body[Symbol.dispose]()
    onCut(reason)
    if (this.#response === undefined) return void res.destroy()
    const pieces = this.#response.isChunked ? framedAfter(this.#open, [mark]).framed : [mark]
    await cutResponse(res, Buffer.concat(pieces), { isFramed: true, reason, onHanded })
  }

  /** Writes a part as the device framed it, or in chunks of our own. */
  #write(response: RawResponse, { data, framing, release }: BodyPart): void {
    for (const piece of data) this.#exchange.onPiece(piece)
    const { framed, open } = framing ?? framedAfter(this.#open, data)
    this.#open = open
    response.write(response.isChunked ? framed : data, release)
  }

  /** The last chunk of the stream that broke off may be incomplete, or its line end may be missing. */
  #closeChunk(response: RawResponse): void {
    if (!response.isChunked) return
    const { dataBytes, lineEnd } = this.#open
    if (dataBytes > 0) throw CHUNK_TOO_SHORT
    if (lineEnd !== '') response.write([Buffer.from(lineEnd)], () => undefined)
  }
}

const CHUNK_TOO_SHORT = new CapfleetError(
  'aged-out',
  'the packets of the device have changed: it announced more of them before',
)
