import type { LogEntry } from '../../native/segment-entry.ts'
import { completesAddressTable, transposeAddresses } from '../../native/stored-segments.ts'
import { pathOf } from '../store/stored-capture.ts'

/**
 * Makes complete tables of addresses quick to read, one after another and beside the capture. What fails or is
 * interrupted stays as correct and slower, until `capfleet store reindex`.
 */
export class AddressTables implements AsyncDisposable {
  #isEnding = false
  /** Settles when the work so far is done; never rejects. */
  #work = Promise.resolve()

  /** Called with finished segments; returns at once. `folder` is that of their capture. */
  finish(folder: string, segments: readonly LogEntry[]): void {
    for (const segment of segments) {
      if (!completesAddressTable(segment.number)) continue
      const path = pathOf(folder, segment)
      this.#work = this.#work.then(async () => {
        if (!this.#isEnding) await transposeAddresses(path).catch(() => undefined)
      })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true
    await this.#work
  }
}
