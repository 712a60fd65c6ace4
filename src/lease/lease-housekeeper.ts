/**
 * What each replica does once per heartbeat for all: the housekeeping of tidy.lua, asking devices
 * about suspects (and about all that they serve, when Redis was restarted), finding what was given
 * back and is still in Redis, and telling waiters their place.
 */
import type { Log } from '../base/log.ts'
import type { LeaseEntry } from './lease-entry.ts'
import type { LeaseQueue } from './lease-queue.ts'
import type { LeaseScripts } from './lease-scripts.ts'

/** What a device says of its live downloads. */
export interface DeviceReaders {
  readonly count: number
  /** Names of the leases that it serves; undefined: it knows no names. */
  readonly serving: ReadonlySet<string> | undefined
}

/**
 * Asks the device for its live downloads, anew at each call: an older answer would free places that
 * are in use. A device that knows names refuses from then on those of the leases `suspects` that it
 * does not serve. Undefined: this device can never tell; places that a dead replica had there are
 * freed by time. Rejects when it could tell but did not answer: then they stay.
 */
export type ReadersOf = (device: string, suspects: readonly string[]) => Promise<DeviceReaders | undefined>

export interface HousekeeperOptions {
  readonly scripts: LeaseScripts
  readonly queue: LeaseQueue
  readonly log: Log
  readonly entries: ReadonlyMap<string, LeaseEntry>
  readonly readersOf: ReadersOf
  /** All that there are. */
  readonly devices: () => readonly string[]
  /** Gives back what Redis still has of an id that nobody here has. */
  readonly release: (id: string) => Promise<unknown>
}

/** A device with suspects, and the names of their leases. */
interface Probe {
  readonly device: string
  readonly suspects: readonly string[]
}

const ROUNDS_TO_RECONCILE = 30
const DEVICES_ASKED_AT_ONCE = 32
const PLACES_A_BEAT = 100
/** Whoever is woken meanwhile waits for one script at most. */
const PLACES_A_SCRIPT = 20
const ENTRIES_A_BEAT = 2_000

export class LeaseHousekeeper {
  readonly #options: HousekeeperOptions
  /** Devices that have been asked and have not answered yet. */
  readonly #asked = new Set<string>()
  #running: Promise<void> | undefined
  /** Until this is 0, at each round one less. */
  #roundsToReconcile = 0
  /** Where it goes on telling waiters their place. */
  #turn: MapIterator<LeaseEntry>

  constructor(options: HousekeeperOptions) {
    this.#options = options
    this.#turn = options.entries.values()
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

  /**
   * Redis was restarted: asks all devices for streams that nobody tells of. Never fails; a device that
   * does not answer, or after the recovery, is passed over.
   */
  async adoptUnknown(): Promise<void> {
    const left = this.#options.devices().values()
    const askNext = async () => {
      for (const device of left) await this.#adopt(device)
    }
    await Promise.all(Array.from({ length: DEVICES_ASKED_AT_ONCE }, askNext))
  }

  /** Something could not be given back. */
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
      for (const probe of step.probes) void this.#probe(probe, step.nowMs)
    }
  }

  async #probe({ device, suspects }: Probe, askedMs: number): Promise<void> {
    if (this.#asked.has(device)) return
    this.#asked.add(device)
    try {
      const readers = await this.#options.readersOf(device, suspects)
      const serving = readers?.serving
      const gone = serving && suspects.filter((name) => !serving.has(name))
      const freed = await this.#options.scripts.clear(device, readers?.count, askedMs, gone)
      if (freed > 0)
        this.#options.log.info('lease.suspects-freed', { device, readers: readers?.count, freed })
    } catch (error) {
      this.#options.log.debug('lease.probe-failed', { device, message: (error as Error).message })
    } finally {
      this.#asked.delete(device)
    }
  }

  async #adopt(device: string): Promise<void> {
    const { readersOf, scripts, log } = this.#options
    try {
      const readers = await readersOf(device, [])
      if (readers?.serving === undefined || readers.serving.size === 0) return
      const adopted = await scripts.adopt(device, [...readers.serving])
      if (adopted > 0) log.info('lease.unknown-adopted', { device, adopted })
    } catch (error) {
      log.debug('lease.probe-failed', { device, message: (error as Error).message })
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

  /** Of those who want to know their place, some at a time, in turn. */
  #someWaiting(): readonly LeaseEntry[] {
    const found: LeaseEntry[] = []
    for (let looked = 0; looked < ENTRIES_A_BEAT && found.length < PLACES_A_BEAT; looked += 1) {
      const { value, done } = this.#turn.next()
      if (done) {
        this.#turn = this.#options.entries.values()
        break
      }
      if (value.state === 'waiting' && value.ticket !== undefined && value.request.onPosition)
        found.push(value)
    }
    return found
  }
}
