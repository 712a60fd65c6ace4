/** The answers in progress on a server, so that its shutdown can wait for exactly these. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { lingerAtEnd } from './lingering-close.ts'
import { tcpSocketOf } from './reset-connection.ts'

export class RunningAnswers {
  /**
   * One slot each, undefined when free. A Set rebuilds itself after a number of changes, and each old version keeps
   * its contents, and the next version, alive in the young generation: all answers would be promoted to the old
   * generation.
   */
  readonly #places: (ServerResponse | undefined)[] = []
  readonly #freePlaces: number[] = []
  readonly #lastSockets = new Set<Socket>()
  #isDraining = false
  #onIdle: (() => void) | undefined

  /** Tracks the answer until it ends. */
  add(res: ServerResponse): void {
    if (this.#isDraining) this.#makeLast(res)
    const place = this.#freePlaces.pop() ?? this.#places.length
    this.#places[place] = res
    res.once('close', () => {
      this.#places[place] = undefined
      this.#freePlaces.push(place)
      if (this.#isIdle) this.#onIdle?.()
    })
  }

  /** From now on a connection ends with its answer, and its client connects elsewhere. */
  drain(): void {
    this.#isDraining = true
    for (const res of this.#places) if (res !== undefined) this.#makeLast(res)
  }

  /** Resolves when none is in progress. */
  async idle(): Promise<void> {
    if (this.#isIdle) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** The TCP sockets on which an answer was in progress at some time since drain(): they end on their own after it. */
  get lastSockets(): ReadonlySet<Socket> {
    return this.#lastSockets
  }

  get #isIdle(): boolean {
    return this.#freePlaces.length === this.#places.length
  }

  /** Once the head has been sent, the answer cannot tell its client any more. */
  #makeLast(res: ServerResponse): void {
    const { socket } = res.req
    if (!res.headersSent) res.shouldKeepAlive = false
    lingerAtEnd(socket)
    this.#lastSockets.add(tcpSocketOf(socket))
  }
}
