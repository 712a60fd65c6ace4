/** Watches a job while it runs: reports its progress, and notices when its result is no longer wanted. */
import { addAbortListener } from 'node:events'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import { type ExportState, LIVE_STATES } from '../../gateway/export/export-record.ts'
import type { ExportStore } from '../../gateway/export/export-store.ts'
import type { ExportChange } from '../../gateway/export/record-fields.ts'

const BEAT_MS = 1_000

/** The signal's reason if the export was cancelled, has failed or no longer exists. */
export const NOT_WANTED = new Error('the export was cancelled or removed')
/** The signal's reason if another worker has taken over the job. */
export const TAKEN_OVER = new Error('another worker is writing the export')

export interface WatchOptions {
  readonly store: ExportStore
  readonly order: ExportOrder
  /** Ends the job because the worker is stopping. */
  readonly stopping: AbortSignal
  /** The writer as which the job runs, or undefined if it is not a writer. */
  readonly writer?: string
  /** What to report at each beat. */
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
      // While Redis is unreachable the work continues: its result is checked when it is stored.
    }
  }
}

function isLive(state: ExportState | undefined): boolean {
  return state !== undefined && LIVE_STATES.includes(state)
}
