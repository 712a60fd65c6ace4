/**
 * What each replica does once per heartbeat for all: the housekeeping of tidy.lua, asking devices
 * with suspects for their readers, finding what was given back and is still in Redis, and telling
 * waiters their place.
 */
import type { Log } from '../../shared/base/log.ts'
import type { LeaseEntry } from './lease-entry.ts'
import type { LeaseQueue } from './lease-queue.ts'
import type { LeaseScripts } from './lease-scripts.ts'

/**
 * Asks the device how many downloads it has, anew at each call: an older answer would free streams that
 * are in use. Undefined: this device can never tell; streams that a dead replica had there are freed
 * by time. Rejects when it could tell but did not answer: then they stay.
 */
export type ReadersOf = (device: string) => Promise<number | undefined>

export interface HousekeeperOptions {
  readonly scripts: LeaseScripts
  readonly queue: LeaseQueue
  readonly log: Log
  readonly entries: ReadonlyMap<string, LeaseEntry>
  readonly readersOf: ReadersOf
  /** Gives back what Redis still has of an id that nobody here has. */
  readonly release: (id: string) => Promise<unknown>
}

const ROUNDS_TO_RECONCILE = 30
const PLACES_A_BEAT = 100
/** Few, because a waiter who is woken meanwhile waits for one script. */
const PLACES_A_SCRIPT = 20
const ENTRIES_A_BEAT = 2_000

export class LeaseHousekeeper {
  readonly #options: HousekeeperOptions
  /** Devices that have been asked and have not answered yet. */
  readonly #asked = new Set<string>()
  #running: Promise<void> | undefined
  /** Counts the rounds down to the next one that reconciles. */
  #roundsToReconcile = 0
  /** The entries that have not been told their place yet in this turn. */
  #nextToTell: MapIterator<LeaseEntry>

  constructor(options: HousekeeperOptions) {
    this.#options = options
    this.#nextToTell = options.entries.values()
  }

  /** Never fails; when it still runs from the last time, nothing more is done. */
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

  /** Reconciles in the next round, because something could not be given back. */
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
      // A device may take its time to answer; the housekeeping of the others does not wait for it.
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

  /** A request may come to Redis twice, around its release, when a connection breaks in between. */
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

  /** Some of the waiters who want to know their place, in turn. */
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
