import type { LogEntry } from '../../../native/segment-entry.ts'
import {
  completesAddressTable,
  repairAddresses,
  transposeAddresses,
} from '../../../native/stored-segments.ts'
import { pathOf } from '../../store/stored-capture.ts'

/**
 * Rewrites complete tables of addresses into the form that is fast to read, and adds those of resumed segments, one at
 * a time, in the background. If that fails, answers stay correct but are slower until `capfleet store reindex`.
 */
export class AddressTables implements AsyncDisposable {
  readonly #end = new AbortController()
  /** The folder that recorded() was last called with. */
  #folder = ''
  /** Settles when the work so far is done; never rejects. */
  #work = Promise.resolve()

  /** Called with segments that have their addresses; returns at once. `folder` is that of their capture. */
  finish(folder: string, segments: readonly LogEntry[]): void {
    for (const segment of segments) {
      if (!completesAddressTable(segment.number)) continue
      this.#add(() => transposeAddresses(pathOf(folder, segment)))
    }
  }

  /** Called with segments that were recorded. Those that come first may have been begun by an earlier recorder. */
  recorded(folder: string, segments: readonly LogEntry[]): void {
    if (folder !== this.#folder) {
      for (const segment of segments)
        this.#add(() => repairAddresses(pathOf(folder, segment), this.#end.signal))
    }
    this.#folder = folder
    this.finish(folder, segments)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('the recorder is shutting down'))
    await this.#work
  }

  #add(work: () => Promise<unknown>): void {
    this.#work = this.#work.then(async () => {
      if (!this.#end.signal.aborted) await work().catch(() => undefined)
    })
  }
}
