import type { LogEntry } from '../../native/segment-entry.ts'
import { completesAddressTable, repairAddresses, transposeAddresses } from '../../native/stored-segments.ts'
import { pathOf } from '../store/stored-capture.ts'

/**
 * Makes complete tables of addresses quick to read, and adds those of continued segments, one after another and beside
 * the capture. What fails or is interrupted stays as correct and slower, until `capfleet store reindex`.
 */
export class AddressTables implements AsyncDisposable {
  readonly #end = new AbortController()
  /** The folder that finish() was last called with, and the ports of its segments. */
  #folder = ''
  readonly #ports = new Set<number>()
  /** Settles when the work so far is done; never rejects. */
  #work = Promise.resolve()

  /** Called with finished segments; returns at once. `folder` is that of their capture. */
  finish(folder: string, segments: readonly LogEntry[]): void {
    if (folder !== this.#folder) {
      this.#folder = folder
      this.#ports.clear()
    }
    for (const segment of segments) {
      const path = pathOf(folder, segment)
      // The first segment of a port may have been begun by an earlier recorder: its writer then has no addresses.
      if (!this.#ports.has(segment.port)) this.#add(() => repairAddresses(path, this.#end.signal))
      this.#ports.add(segment.port)
      if (completesAddressTable(segment.number)) this.#add(() => transposeAddresses(path))
    }
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
