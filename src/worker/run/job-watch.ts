/** Looks after a job while it runs: tells how far it is, and hears when nobody wants it any more. */
import { addAbortListener } from 'node:events'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import { type ExportState, LIVE_STATES } from '../../gateway/export/export-record.ts'
import type { ExportChange, ExportStore } from '../../gateway/export/export-store.ts'

const BEAT_MS = 1_000

/** The reason of the signal when the export was cancelled, failed or forgotten. */
export const NOT_WANTED = new Error('the export was cancelled or removed')
/** The reason of the signal when another worker has taken the job over. */
export const TAKEN_OVER = new Error('another worker is writing the export')

export interface WatchOptions {
  readonly store: ExportStore
  readonly order: ExportOrder
  /** Ends the job: the worker stops. */
  readonly stopping: AbortSignal
  /** The writer as which the job runs; undefined: it is no writer. */
  readonly writer?: string
  /** What is told at each beat. */
  readonly progress: () => ExportChange
}

export class JobWatch implements AsyncDisposable {
  readonly #options: WatchOptions
  readonly #abort = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #stopping: Disposable
  #beating: Promise<void> | undefined

  constructor(options: WatchOptions) {
    this.#options = options
    const { stopping } = options
    this.#stopping = addAbortListener(stopping, () => this.#abort.abort(stopping.reason))
    this.#timer = setInterval(() => {
      this.#beating ??= this.#beat().finally(() => {
        this.#beating = undefined
      })
    }, BEAT_MS)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopping[Symbol.dispose]()
    await this.#beating
  }

  async #beat(): Promise<void> {
    const { store, order, writer, progress } = this.#options
    try {
      const guard = { states: LIVE_STATES, ...(writer === undefined ? {} : { writer }) }
      const { isChanged, state } = await store.change(order, progress(), guard)
      if (!isChanged) this.#abort.abort(isLive(state) ? TAKEN_OVER : NOT_WANTED)
    } catch {
      // While Redis is away the work goes on: what it leads to is judged when it is kept.
    }
  }
}

function isLive(state: ExportState | undefined): boolean {
  return state !== undefined && LIVE_STATES.includes(state)
}
