/** The answers of a server that are under way, so that its end can wait for them, and for nothing else. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { lingerAtEnd } from './lingering-close.ts'
import { tcpSocketOf } from './reset-connection.ts'

export class RunningAnswers {
  /**
   * Each in a place of its own, undefined when it is free. A Set makes itself anew after so many changes, and each of the
   * old ones keeps what it held, and the next one, from the collector of young objects: all answers would grow old.
   */
  readonly #places: (ServerResponse | undefined)[] = []
  readonly #freePlaces: number[] = []
  readonly #lastSockets = new Set<Socket>()
  #isDraining = false
  #onIdle: (() => void) | undefined

  /** Follows the answer to its end. */
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

  /** From now on a connection ends with its answer, and its client asks elsewhere. */
  drain(): void {
    this.#isDraining = true
    for (const res of this.#places) if (res !== undefined) this.#makeLast(res)
  }

  /** Resolves when none is under way. */
  async idle(): Promise<void> {
    if (this.#isIdle) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** Those of TCP that an answer was under way on since drain(): they end by themselves, behind it. */
  get lastSockets(): ReadonlySet<Socket> {
    return this.#lastSockets
  }

  get #isIdle(): boolean {
    return this.#freePlaces.length === this.#places.length
  }

  /** What has a head already cannot tell its client any more. */
  #makeLast(res: ServerResponse): void {
    const { socket } = res.req
    if (!res.headersSent) res.shouldKeepAlive = false
    lingerAtEnd(socket)
    this.#lastSockets.add(tcpSocketOf(socket))
  }
}
