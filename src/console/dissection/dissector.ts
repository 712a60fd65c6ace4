/**
 * Wireshark in a sandboxed frame, which has neither the page's origin nor a network. The page hands over the module and
 * the packets, and gets rows and fields back. A dissector that crashes, or does not answer in time, is removed with its
 * frame, which also returns its memory.
 */
import type { Order, OrderKind, Orders, Reply, Started } from '../../dissector/messages.ts'
import { openAnswer } from '../base/ask-gateway.ts'
import { TEXTS } from '../texts.ts'

/** A display filter that Wireshark rejects, with its message. */
export class FilterMistake extends Error {}

/** The dissector has crashed, hangs, or was closed. */
export class DissectorFailure extends Error {}

/** A slow machine compiles the module for this long; packets that take longer to read are not worth the wait. */
const ANSWER_LIMIT_MS = 30_000

interface Waiting {
  readonly resolve: (answer: Orders[OrderKind]['answer']) => void
  readonly reject: (failure: Error) => void
}

export class Dissector {
  readonly #frame: HTMLIFrameElement
  readonly #waiting = new Map<number, Waiting>()
  readonly #onFailure: (failure: DissectorFailure) => void
  readonly #leaving = new AbortController()
  #orders = 0
  /** Of the order that the frame executes now. */
  #watchdog: ReturnType<typeof setTimeout> | undefined
  #started: Started | undefined

  /** `onFailure` is called at most once, and not after close(). */
  static async start(
    build: string,
    {
      signal,
      onFailure,
    }: { readonly signal: AbortSignal; readonly onFailure: (failure: DissectorFailure) => void },
  ): Promise<Dissector> {
    const folder = `dissector/${encodeURIComponent(build)}`
    const frame = document.createElement('iframe')
    frame.setAttribute('sandbox', 'allow-scripts')
    frame.hidden = true
    frame.title = TEXTS.dissection.frame
    frame.src = `./${folder}/frame.html`
    const dissector = new Dissector(frame, onFailure)
    signal.addEventListener('abort', () => dissector.close())
    signal.throwIfAborted()
    try {
      // The frame loads while the module is on its way, which takes longer.
      const [wasm, data] = await Promise.all([
        loadedPart(`${folder}/wiregasm.wasm`, signal),
        loadedPart(`${folder}/wiregasm.data`, signal),
        dissector.#shown(),
      ])
      dissector.#started = await dissector.ask('start', { wasm, data }, [wasm, data])
    } catch (error) {
      dissector.close()
      throw error
    }
    return dissector
  }

  private constructor(frame: HTMLIFrameElement, onFailure: (failure: DissectorFailure) => void) {
    this.#frame = frame
    this.#onFailure = onFailure
    window.addEventListener('message', (event) => this.#hear(event), { signal: this.#leaving.signal })
  }

  get columns(): readonly string[] {
    return this.#started?.columns ?? []
  }

  get version(): string {
    return this.#started?.version ?? ''
  }

  /** Fails with FilterMistake, or DissectorFailure. */
  ask<Kind extends OrderKind>(
    kind: Kind,
    takes: Orders[Kind]['takes'],
    transfer: readonly Transferable[] = [],
  ): Promise<Orders[Kind]['answer']> {
    if (this.#leaving.signal.aborted) return Promise.reject(new DissectorFailure(TEXTS.dissection.closed))
    this.#orders += 1
    const order = { id: this.#orders, kind, ...takes } as Order
    return new Promise<Orders[Kind]['answer']>((resolve, reject) => {
      this.#waiting.set(order.id, { resolve: resolve as Waiting['resolve'], reject })
      if (this.#waiting.size === 1) this.#watch()
      // Its origin is opaque, so it has no name.
      this.#frame.contentWindow?.postMessage(order, '*', [...transfer])
    })
  }

  /** Removes the frame, and rejects what was asked and not answered. */
  close(): void {
    this.#end(new DissectorFailure(TEXTS.dissection.closed))
  }

  #shown(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#frame.addEventListener('load', () => resolve(), { once: true })
      this.#leaving.signal.addEventListener('abort', () =>
        reject(new DissectorFailure(TEXTS.dissection.closed)),
      )
      document.body.append(this.#frame)
    })
  }

  #hear({ source, data }: MessageEvent<Reply>): void {
    if (source !== this.#frame.contentWindow || typeof data !== 'object' || data === null) return
    const waiting = this.#waiting.get(data.id)
    if (waiting === undefined) return
    if ('failure' in data) {
      this.#fail(`${TEXTS.dissection.failed} (${data.failure}).`)
      return
    }
    this.#waiting.delete(data.id)
    this.#watch()
    if ('mistake' in data) waiting.reject(new FilterMistake(data.mistake))
    else waiting.resolve(data.answer)
  }

  /** The time limit begins again with each answer, because orders are executed one after another. */
  #watch(): void {
    clearTimeout(this.#watchdog)
    if (this.#waiting.size === 0) return
    this.#watchdog = setTimeout(
      () => this.#fail(TEXTS.dissection.hangs(ANSWER_LIMIT_MS / 1_000)),
      ANSWER_LIMIT_MS,
    )
  }

  #fail(message: string): void {
    const failure = new DissectorFailure(message)
    this.#end(failure)
    this.#onFailure(failure)
  }

  #end(failure: DissectorFailure): void {
    if (this.#leaving.signal.aborted) return
    this.#leaving.abort()
    clearTimeout(this.#watchdog)
    this.#frame.remove()
    for (const { reject } of this.#waiting.values()) reject(failure)
    this.#waiting.clear()
  }
}

async function loadedPart(path: string, signal: AbortSignal): Promise<ArrayBuffer> {
  return (await openAnswer(path, { signal })).arrayBuffer()
}
