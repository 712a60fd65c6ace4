/**
 * Handles clients that read so slowly that they keep streams others are waiting for, or read nothing at all: a device
 * would soon end such a stream. The streams are released, the connection is kept, and once the client has read what it
 * was sent, the download is queued again. A download that cannot be continued is cut, so that no client can hold a
 * device forever.
 */

import type { ServerResponse } from 'node:http'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import { orAborted } from '../../shared/base/or-aborted.ts'
import { watchSlowClient } from '../../shared/http/slow-client.ts'
import type { FetchedDownload } from '../fetch/body/fetch-download.ts'
import type { DownloadOutcomes } from './download-outcomes.ts'

/** A client that reads less than this in a period is slow. */
const SLOW_BYTES = 1_048_576
/** Periods without a byte after which streams are released although no one waits. */
const STILL_TURNS = 2

export interface SlowReaderParts {
  readonly metrics: DownloadOutcomes
  readonly log: Log
  /** A client that accepts nothing for this long is cut off. */
  readonly clientIdleTimeoutMs: number
  /**
   * A download whose client reads less than 1 MiB in this time releases its streams if others are waiting; if it reads
   * nothing in twice this time, in any case.
   */
  readonly parkAfterMs: number
  /** A download that cannot be parked is cut if its client is slow for this long. */
  readonly slowAfterMs: number
  /** clientIdleTimeoutMs for a client whose download holds no stream. */
  readonly parkedIdleTimeoutMs: number
}

export interface SlowReaderOptions {
  readonly res: ServerResponse
  readonly requestId: string
  /** Aborts at the end of the download; nothing happens after that. */
  readonly signal: AbortSignal
  /** Bytes of the answer written so far, read by the client or not. */
  readonly writtenBytes: () => bigint
  /** Called when the download cannot continue. */
  readonly onFailure: (error: unknown) => void
}

/** Watches the client until the result is disposed. */
export function watchReader(
  fetched: FetchedDownload,
  parts: SlowReaderParts,
  options: SlowReaderOptions,
): Disposable {
  if (fetched.body.isParkable) return new Parking(fetched, parts, options)
  const { res, writtenBytes, onFailure } = options
  const isWanted = () => fetched.isWanted()
  const onSlow = () => onFailure(TOO_SLOW)
  return watchSlowClient({ res, turnMs: parts.slowAfterMs, writtenBytes, isWanted, onSlow })
}

const TOO_SLOW = new CapfleetError(
  'client-timeout',
  'the client read less than 1 MiB for too long while others waited for the device; try again, or request less',
)

class Parking implements Disposable {
  readonly #fetched: FetchedDownload
  readonly #parts: SlowReaderParts
  readonly #options: SlowReaderOptions
  readonly #timer: NodeJS.Timeout
  #takenBefore = 0n
  #stillTurns = 0
  #busy = false
  #ended = false

  constructor(fetched: FetchedDownload, parts: SlowReaderParts, options: SlowReaderOptions) {
    this.#fetched = fetched
    this.#parts = parts
    this.#options = options
    this.#timer = setInterval(() => void this.#turn(), parts.parkAfterMs)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#ended = true
  }

  async #turn(): Promise<void> {
    const { signal, onFailure } = this.#options
    if (this.#busy) return
    this.#busy = true
    try {
      if (!this.#isSlow()) return
      if (this.#stillTurns >= STILL_TURNS || (await this.#fetched.isWanted())) await this.#parkUntilRead()
    } catch (error) {
      if (!signal.aborted) onFailure(error)
    } finally {
      this.#busy = false
    }
  }

  #isSlow(): boolean {
    const { res, writtenBytes } = this.#options
    const taken = writtenBytes() - BigInt(res.writableLength)
    const turnBytes = taken - this.#takenBefore
    this.#takenBefore = taken
    // If there is nothing to read, it is the devices that are slow.
    const isSlow = turnBytes < SLOW_BYTES && res.writableLength > 0
    this.#stillTurns = isSlow && turnBytes === 0n ? this.#stillTurns + 1 : 0
    return isSlow
  }

  async #parkUntilRead(): Promise<void> {
    const { res, requestId, signal } = this.#options
    const { metrics, log, parkedIdleTimeoutMs, clientIdleTimeoutMs } = this.#parts
    if (this.#ended || signal.aborted || res.writableLength === 0) return
    // The existing handler stays.
    res.setTimeout(parkedIdleTimeoutMs)
    await this.#fetched.park()
    metrics.parked()
    log.info('download.parked', { requestId })
    await allTaken(res, signal)
    if (this.#ended) return
    await this.#fetched.goOn(parkedIdleTimeoutMs)
    if (signal.aborted) return
    this.#stillTurns = 0
    res.setTimeout(clientIdleTimeoutMs)
    log.info('download.unparked', { requestId })
  }
}

/** Resolves when everything that was written has been sent. */
async function allTaken({ socket }: ServerResponse, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const { promise, resolve } = Promise.withResolvers<void>()
  // 'drain' comes only after more than a little was written; this is done in its turn.
  socket?.write(new Uint8Array(0), () => resolve())
  await orAborted(promise, signal)
}
