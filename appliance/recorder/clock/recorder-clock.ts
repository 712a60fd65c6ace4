/**
 * The time that the recorder may act on. Packets are stamped by CLOCK_REALTIME, which anyone may set; removal by age,
 * and schedules, must not depend on a clock that was set by mistake.
 *
 * Ages are computed with a reference: a time that was right once, extrapolated with CLOCK_MONOTONIC, and only while
 * CLOCK_REALTIME agrees with it within a minute. Otherwise removal by age is suspended, and the recorder reports it
 * (`clock-distrusted`, `ClockHold` of capture_status, capfleet_recorder_clock_trusted); removal for room continues.
 * The suspension ends (`clock-trusted`) when
 *
 *   - the clock agrees with the reference again ("returned"),
 *   - the kernel reports that the clock is synchronized by NTP or PTP, and it has not stepped for a minute
 *     ("synchronised"), or
 *   - an operator confirms it, by `capfleet store trust-clock` ("operator").
 *
 * The reference outlives the recorder in clock.json. Within the same boot of the machine it continues. After a reboot,
 * or without the file, the clock is compared with the last known time: it is trusted if it is no earlier (except for a
 * minute) and at most 15 minutes later, which covers a reboot. A longer time could be a downtime or a wrong clock: one
 * of the three conditions above must decide. A store without packets has nothing to lose, and trusts the present
 * clock. What a store without the file holds is determined in the background, because reading a large one takes long
 * while packets arrive.
 *
 * If a reference turns out to be wrong, nothing becomes older: what was stored under it keeps its age
 * (stamp-corrections.ts), and so does what was stored while the clock was behind. Stamps from the future are used
 * unchanged: such packets stay longer.
 *
 * Schedules and rolls follow CLOCK_REALTIME, except for a step of more than a minute: they follow that once it has
 * lasted ten minutes, or earlier if the clock is trusted. A clock that is wrong for 30 s neither ends nor starts a
 * capture.
 */
import type { Log } from '../../../src/shared/base/log.ts'
import type { EventSink } from '../../events/event-log.ts'
import {
  type ClockHold,
  type ClockRecord,
  readClockRecord,
  writeClockRecord,
} from '../../store/clock-record.ts'
import type { StorePaths } from '../../store/store-paths.ts'
import type { Clocks } from './clock-watch.ts'
import { lateness, shifted, withLate } from './stamp-corrections.ts'

export interface RecorderClockOptions {
  readonly clocks: Clocks
  /** Changes with each boot of the machine; "" if the kernel does not report it. */
  readonly bootId: string
  /** Whether an NTP or PTP daemon synchronizes CLOCK_REALTIME. */
  readonly isSynced: () => boolean
  readonly paths: StorePaths
  readonly events: EventSink
  readonly log: Log
}

const SECOND_NS = 1_000_000_000n
const MINUTE_NS = 60n * SECOND_NS
/** How far the clock may differ from the reference: more than small corrections, less than any age that matters. */
const TOLERANCE_NS = MINUTE_NS
/** Maximum duration of a reboot. A clock that is ahead by less after one is not noticed. */
const DOWN_MAX_NS = 15n * MINUTE_NS
const SYNCED_FOR_NS = MINUTE_NS
const FOLLOWED_AFTER_NS = 10n * MINUTE_NS
const SAVED_EVERY_NS = MINUTE_NS
const INTERVAL_MS = 1_000
const NANOS_PER_MS = 1_000_000n
/** Limit for a clock that is set repeatedly. */
const STRETCHES_MAX = 100

/** As long ago as possible: no clock is a plausible continuation of it. */
export const NEVER_NS = 0n

interface Reading {
  readonly monotonicNs: bigint
  readonly wallNs: bigint
  readonly offsetNs: bigint
}

interface SeenReading extends Reading {
  readonly isSynced: boolean
}

export class RecorderClock implements AsyncDisposable {
  readonly #options: RecorderClockOptions
  #record: ClockRecord
  #checkedNs: bigint
  #savedNs: bigint | undefined
  #saving: Promise<void> | undefined
  #isSaveFailing = false
  #timer: NodeJS.Timeout | undefined
  /**
   * Until learn() reports what a store without clock.json holds: the clock at the start, then the first and last
   * reading of each stretch without a step. They are judged then, as they would have been.
   */
  #unlearned: SeenReading[] | undefined

  /** Use RecorderClock.open. */
  constructor(options: RecorderClockOptions, record: ClockRecord) {
    this.#options = options
    this.#record = record
    this.#checkedNs = record.monotonicNs
  }

  /** Compares the clock with what is known about it. If nothing is known, it is not trusted before learn(). */
  static async open(options: RecorderClockOptions): Promise<RecorderClock> {
    const { bootId, clocks, paths } = options
    const known = await readClockRecord(paths)
    const now = read(clocks)
    const isSameBoot =
      known !== undefined && bootId !== '' && known.bootId === bootId && known.monotonicNs <= now.monotonicNs
    const record = isSameBoot ? known : recordOfBoot(options, { known, now, lastNs: known?.referenceNs })
    const clock = new RecorderClock(options, record)
    if (!isSameBoot) clock.#checkedNs = now.monotonicNs
    if (known === undefined) clock.#unlearned = [{ ...now, isSynced: options.isSynced() }]
    else clock.#begin(now)
    return clock
  }

  /** Like open, and checks the clock until disposed. */
  static async start(options: RecorderClockOptions): Promise<RecorderClock> {
    const clock = await RecorderClock.open(options)
    clock.#timer = setInterval(() => clock.check(), INTERVAL_MS).unref()
    return clock
  }

  /** Why the clock is not trusted, or "" if it is. */
  get hold(): ClockHold {
    return this.#unlearned === undefined ? (this.#record.hold ?? '') : 'clock-unconfirmed'
  }

  /** Whether there is no clock.json, so that learn() is awaited. */
  get isUnlearned(): boolean {
    return this.#unlearned !== undefined
  }

  /** When anything was last stored before this recorder started; undefined: the store was empty. */
  learn(lastNs: bigint | undefined): void {
    const [start, ...later] = this.#unlearned ?? []
    if (start === undefined) return
    this.#unlearned = undefined
    this.#record = recordOfBoot(this.#options, { known: undefined, now: start, lastNs })
    this.#checkedNs = start.monotonicNs
    this.#begin(start, later)
  }

  /** Whether what was stamped at `storedNs` is older than that; false while the clock is not trusted. */
  isAged(storedNs: bigint, maxAgeMs: number): boolean {
    const now = this.check()
    if (this.hold !== '') return false
    const stampNs = storedNs + lateness(this.#record.corrections, storedNs)
    return stampNs < this.#referenceNs(now.monotonicNs) - BigInt(maxAgeMs) * NANOS_PER_MS
  }

  /** The time that schedules and rolls follow. */
  scheduleNs(): bigint {
    const { monotonicNs, wallNs, offsetNs } = this.check()
    const { scheduleOffsetNs } = this.#record
    return isNear(offsetNs, scheduleOffsetNs) ? wallNs : monotonicNs + scheduleOffsetNs
  }

  /** An operator has confirmed that the clock is right. */
  confirm(): void {
    this.learn(NEVER_NS)
    const now = this.check()
    if (this.#record.hold !== undefined) this.#trust(now, 'operator')
  }

  /** Compares the clocks now. */
  check(): Reading {
    const now = read(this.#options.clocks)
    if (this.#unlearned !== undefined) {
      this.#note(now, this.#unlearned)
      return now
    }
    this.#judge(now, this.#options.isSynced)
    if (this.#savedNs === undefined || now.monotonicNs - this.#savedNs >= SAVED_EVERY_NS) this.#save(now)
    return now
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    if (this.#unlearned !== undefined && !this.#hasStepped(this.#unlearned)) {
      // The next recorder learns it.
      this.#unlearned = undefined
      return
    }
    // What was stored at a wrong time must be recorded as such.
    this.learn(NEVER_NS)
    this.#savedNs = undefined
    await this.#saving
    this.#save(this.check())
    await this.#saving
  }

  #begin(start: Reading, later: readonly SeenReading[] = []): void {
    const { hold } = this.#record
    for (const seen of later) this.#judge(seen, () => seen.isSynced)
    this.check()
    // One that has just begun has been reported already.
    if (hold !== undefined && this.hold !== '') this.#tellHold(this.hold, start)
  }

  #judge(now: Reading, isSynced: () => boolean): void {
    if (this.#record.hold === undefined) this.#checkTrusted(now)
    else this.#checkHeld(now, isSynced)
    this.#checkedNs = now.monotonicNs
  }

  #note(now: Reading, seen: SeenReading[]): void {
    const ofStretch = seen.slice(-2).filter(({ offsetNs }) => isNear(offsetNs, now.offsetNs))
    if (ofStretch.length === 2) seen.pop()
    seen.push({ ...now, isSynced: this.#options.isSynced() })
  }

  #hasStepped(seen: readonly SeenReading[]): boolean {
    return seen.some(({ offsetNs }) => !isNear(offsetNs, this.#record.scheduleOffsetNs))
  }

  #checkTrusted(now: Reading): void {
    const aheadNs = now.wallNs - this.#referenceNs(now.monotonicNs)
    if (aheadNs <= TOLERANCE_NS && aheadNs >= -TOLERANCE_NS) return
    this.#record = { ...this.#record, hold: 'clock-stepped', stretches: [this.#stretchFrom(now)] }
    this.#tellHold('clock-stepped', now)
    this.#savedNs = undefined
  }

  #checkHeld(now: Reading, isSynced: () => boolean): void {
    this.#continueStretch(now)
    const { hold, stretches } = this.#record
    const heldForNs = now.monotonicNs - (stretches.at(-1)?.sinceNs ?? now.monotonicNs)
    const aheadNs = now.wallNs - this.#referenceNs(now.monotonicNs)
    const aheadMaxNs = hold === 'clock-unconfirmed' ? DOWN_MAX_NS : TOLERANCE_NS
    if (aheadNs >= -TOLERANCE_NS && aheadNs <= aheadMaxNs) this.#trust(now, 'returned')
    else if (heldForNs >= SYNCED_FOR_NS && isSynced()) this.#trust(now, 'synchronised')
    else if (heldForNs >= FOLLOWED_AFTER_NS)
      this.#record = { ...this.#record, scheduleOffsetNs: now.offsetNs }
  }

  /** Extends the current stretch by this reading, unless the clock has stepped since the last one. */
  #continueStretch(now: Reading): void {
    const { stretches } = this.#record
    const present = stretches.at(-1)
    if (present !== undefined && isNear(present.offsetNs, now.offsetNs)) {
      const lastNs = now.wallNs > present.lastNs ? now.wallNs : present.lastNs
      this.#record = { ...this.#record, stretches: [...stretches.slice(0, -1), { ...present, lastNs }] }
      return
    }
    const added = [...stretches, this.#stretchFrom(now)]
    this.#record = { ...this.#record, stretches: added.slice(-STRETCHES_MAX) }
    this.#savedNs = undefined
  }

  /** It may have begun, and packets may have been stamped, at any time since the last check. */
  #stretchFrom({ monotonicNs, wallNs, offsetNs }: Reading) {
    const unseenNs = monotonicNs - this.#checkedNs
    return { offsetNs, sinceNs: monotonicNs, firstNs: wallNs - unseenNs, lastNs: wallNs + SECOND_NS }
  }

  #trust(now: Reading, by: 'returned' | 'synchronised' | 'operator'): void {
    const { hold, stretches, corrections, referenceNs, monotonicNs } = this.#record
    const isReturned = by === 'returned' && hold === 'clock-stepped'
    // A step within the tolerance of the reference does not count: the reference continues.
    const offsetNs = isReturned ? referenceNs - monotonicNs : now.offsetNs
    const heldNs = this.#referenceNs(stretches[0]?.sinceNs ?? now.monotonicNs)
    const aheadNs = offsetNs - (referenceNs - monotonicNs)
    const moved = hold === 'clock-stepped' ? shifted(corrections, aheadNs, heldNs) : corrections
    this.#record = {
      ...this.#record,
      monotonicNs: now.monotonicNs,
      referenceNs: now.monotonicNs + offsetNs,
      hold: undefined,
      scheduleOffsetNs: offsetNs,
      stretches: [],
      corrections: [...withLate(moved, stretches, offsetNs)],
    }
    this.#options.log.info('clock.trusted', { by })
    this.#options.events.append('clock-trusted', { by })
    this.#savedNs = undefined
  }

  #tellHold(reason: ClockHold, now: Reading): void {
    const aheadNs = String(now.wallNs - this.#referenceNs(now.monotonicNs))
    this.#options.log.warn('clock.distrusted', { reason, aheadNs })
    this.#options.events.append('clock-distrusted', { reason, aheadNs })
  }

  #referenceNs(monotonicNs: bigint): bigint {
    return this.#record.referenceNs + monotonicNs - this.#record.monotonicNs
  }

  /** In the background, one at a time; later changes are saved after it. */
  #save(now: Reading): void {
    if (this.#saving !== undefined) return
    const { monotonicNs } = now
    this.#record = { ...this.#record, referenceNs: this.#referenceNs(monotonicNs), monotonicNs }
    this.#savedNs = monotonicNs
    const { paths, log } = this.#options
    this.#saving = writeClockRecord(paths, this.#record)
      .then(
        () => {
          this.#isSaveFailing = false
        },
        (err: unknown) => {
          if (!this.#isSaveFailing) log.warn('clock.not-saved', { err })
          this.#isSaveFailing = true
        },
      )
      .finally(() => {
        this.#saving = undefined
      })
  }
}

interface BootFacts {
  readonly known: ClockRecord | undefined
  readonly now: Reading
  /** The latest time that is known to have passed. */
  readonly lastNs: bigint | undefined
}

/** For a boot about which nothing is known. */
function recordOfBoot(
  { bootId }: RecorderClockOptions,
  { known, now, lastNs = now.wallNs }: BootFacts,
): ClockRecord {
  const aheadNs = now.wallNs - lastNs
  const isPlausible = aheadNs >= -TOLERANCE_NS && aheadNs <= DOWN_MAX_NS
  const { monotonicNs, wallNs, offsetNs } = now
  return {
    format: 1,
    bootId,
    monotonicNs,
    referenceNs: isPlausible ? wallNs : lastNs,
    hold: isPlausible ? undefined : 'clock-unconfirmed',
    scheduleOffsetNs: offsetNs,
    stretches: isPlausible
      ? []
      : [{ offsetNs, sinceNs: monotonicNs, firstNs: wallNs, lastNs: wallNs + SECOND_NS }],
    // Their offset from CLOCK_MONOTONIC means nothing any more: they are late relative to the reference of their boot.
    corrections: known
      ? [...withLate(known.corrections, known.stretches, known.referenceNs - known.monotonicNs)]
      : [],
  }
}

function read(clocks: Clocks): Reading {
  const monotonicNs = clocks.monotonicNs()
  const wallNs = clocks.realtimeNs()
  return { monotonicNs, wallNs, offsetNs: wallNs - monotonicNs }
}

function isNear(aNs: bigint, bNs: bigint): boolean {
  const apartNs = aNs > bNs ? aNs - bNs : bNs - aNs
  return apartNs <= TOLERANCE_NS
}
