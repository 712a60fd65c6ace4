/**
 * Work that each replica does once per heartbeat on behalf of all: the housekeeping of tidy.lua, asking devices with
 * suspects for their readers, finding released requests that are still in Redis, and telling waiters their position.
 */
import type { Log } from '../../shared/base/log.ts'
import type { LeaseEntry } from './lease-entry.ts'
import type { LeaseQueue } from './lease-queue.ts'
import type { LeaseScripts } from './lease-scripts.ts'

/**
 * Asks the device how many downloads it has, freshly for each call: an older answer would free streams that are in
 * use. Undefined: this device never reports it, so streams of a dead replica there are freed after a time-out. Rejects
 * if it normally reports it but did not answer; the streams then stay.
 */
export type ReadersOf = (device: string) => Promise<number | undefined>

export interface HousekeeperOptions {
  readonly scripts: LeaseScripts
  readonly queue: LeaseQueue
  readonly log: Log
  readonly entries: ReadonlyMap<string, LeaseEntry>
  readonly readersOf: ReadersOf
  /** Releases what Redis still has under an id that no entry here has. */
  readonly release: (id: string) => Promise<unknown>
}

const ROUNDS_TO_RECONCILE = 30
const PLACES_A_BEAT = 100
/** Few, because a waiter that is woken meanwhile waits for one script. */
const PLACES_A_SCRIPT = 20
const ENTRIES_A_BEAT = 2_000

export class LeaseHousekeeper {
  readonly #options: HousekeeperOptions
  /** Devices that have been asked and have not answered yet. */
  readonly #asked = new Set<string>()
  #running: Promise<void> | undefined
  /** Rounds until the next one that reconciles. */
  #roundsToReconcile = 0
  /** The entries that have not been told their position yet in this pass. */
  #nextToTell: MapIterator<LeaseEntry>

  constructor(options: HousekeeperOptions) {
    this.#options = options
    this.#nextToTell = options.entries.values()
  }

  /** Never fails; does nothing if the previous run has not ended yet. */
  run(): Promise<void> {
    this.#running ??= this.#round()
      .catch((error: Error) =>
        this.#options.log.warn('lease.housekeeping-failed', { message: error.message }),
      )
      .finally(() => {
        this.#running = undefined
      })
    return this.#running
  }

  /** Makes the next round reconcile, because something could not be released. */
  reconcileNext(): void {
    this.#roundsToReconcile = 0
  }

  async #round(): Promise<void> {
    await this.#tidy()
    if (this.#roundsToReconcile-- <= 0) await this.#reconcile()
    await this.#tellPlaces()
  }

  async #tidy(): Promise<void> {
    for (let more = true; more; ) {
      const step = await this.#options.scripts.tidy()
      more = step.more
      // A device may be slow to answer; the housekeeping of the others does not wait for it.
      for (const device of step.suspected) void this.#clear(device, step.nowMs)
    }
  }

  async #clear(device: string, askedMs: number): Promise<void> {
    if (this.#asked.has(device)) return
    this.#asked.add(device)
    try {
      const readers = await this.#options.readersOf(device)
      const freed = await this.#options.scripts.clear(device, readers, askedMs)
      if (freed > 0) this.#options.log.info('lease.suspects-freed', { device, readers, freed })
    } catch (error) {
      this.#options.log.debug('lease.probe-failed', { device, message: (error as Error).message })
    } finally {
      this.#asked.delete(device)
    }
  }

  /** If a connection breaks in between, a request may reach Redis twice, before and after its release. */
  async #reconcile(): Promise<void> {
    this.#roundsToReconcile = ROUNDS_TO_RECONCILE
    for (const id of await this.#options.queue.ownIds()) {
      if (!this.#options.entries.has(id)) await this.#options.release(id)
    }
  }

  async #tellPlaces(): Promise<void> {
    const waiting = this.#someWaiting()
    const ids = waiting.map(({ request }) => request.id)
    for (let from = 0; from < ids.length; from += PLACES_A_SCRIPT) {
      for (const row of await this.#options.scripts.places(ids.slice(from, from + PLACES_A_SCRIPT))) {
        const entry = this.#options.entries.get(row.id)
        if (entry?.state === 'waiting' && row.position !== undefined) {
          entry.request.onPosition?.({ position: row.position, etaMs: row.etaMs })
        }
      }
    }
  }

  /** A few of the waiters that want to know their position, in turn. */
  #someWaiting(): readonly LeaseEntry[] {
    const found: LeaseEntry[] = []
    for (let looked = 0; looked < ENTRIES_A_BEAT && found.length < PLACES_A_BEAT; looked += 1) {
      const { value, done } = this.#nextToTell.next()
      if (done) {
        this.#nextToTell = this.#options.entries.values()
        break
      }
      if (value.state === 'waiting' && value.ticket !== undefined && value.request.onPosition)
        found.push(value)
    }
    return found
  }
}
