import type { Log } from '../../../src/shared/base/log.ts'
import type { EventSink } from '../../events/event-log.ts'
import type { RollConfig } from '../../settings/capture-config.ts'
import { RollClock } from '../clock/roll-clock.ts'
import type { ScheduleClock } from '../clock/schedule-clock.ts'
import type { CaptureControl } from './capture-control.ts'
import type { RecordedCapture } from './recorded-capture.ts'

export interface CaptureKeeperOptions {
  readonly control: CaptureControl
  readonly schedule: ScheduleClock
  readonly roll: RollConfig
  /** IANA name: the zone of `roll.at`. */
  readonly timeZone: string
  /** The time that schedule and rolls follow. */
  readonly nowNs: () => bigint
  /** The clock that dates captures and their packets. */
  readonly stampNs: () => bigint
  /** A clock that never steps. */
  readonly monotonicMs: () => number
  readonly events: EventSink
  readonly log: Log
}

const TICK_MS = 250
/** A capture that cannot be started, resumed or rolled is retried after this time. */
const RETRY_MS = 3_000
const NANOS_PER_MS = 1_000_000n
const SECOND_MS = 1_000

/**
 * Keeps the capture as schedule and rolls require, by polling the clock: so it follows a clock that is set, and starts
 * in the middle of a run.
 */
export class CaptureKeeper implements AsyncDisposable {
  readonly #options: CaptureKeeperOptions
  readonly #end = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #ticking: Promise<void> = Promise.resolve()
  #retryAtMs = Number.NEGATIVE_INFINITY
  /** When the running capture is to be rolled. */
  #rolling: { readonly capture: RecordedCapture; readonly clock: RollClock } | undefined
  /** Row of the schedule that could not start its capture. */
  #failedRow: string | undefined
  #waitingRow = ''
  #upkeepProblem = ''

  constructor(options: CaptureKeeperOptions) {
    this.#options = options
  }

  /** Maintains the capture until disposed. */
  begin(): void {
    this.#ticking = this.tick().finally(() => this.#scheduleTick())
  }

  /** What is due now is done when this resolves. Never rejects. One call at a time. */
  async tick(): Promise<void> {
    const { control, monotonicMs, log } = this.#options
    await control.upkeep(monotonicMs()).then(
      () => this.#noteUpkeep(undefined),
      (error: unknown) => this.#noteUpkeep(error),
    )
    if (monotonicMs() < this.#retryAtMs) return
    try {
      await this.#act()
    } catch (err) {
      // The control has reported the failure; here it only has to be retried.
      this.#retryAtMs = monotonicMs() + RETRY_MS
      log.debug('capture.retry', { err })
    }
  }

  /** Waits for the end of a tick in progress first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('the recorder is shutting down'))
    clearTimeout(this.#timer)
    await this.#ticking
    clearTimeout(this.#timer)
  }

  #scheduleTick(): void {
    if (this.#end.signal.aborted) return
    // Rows change at whole seconds: one tick comes just after each.
    const toSecondMs = SECOND_MS - (this.#nowMs() % SECOND_MS)
    this.#timer = setTimeout(() => this.begin(), Math.min(TICK_MS, toSecondMs))
  }

  async #act(): Promise<void> {
    const { control, schedule } = this.#options
    const { signal } = this.#end
    await control.suspendWithoutRoom()
    const due = schedule.due
    const row = control.scheduleName
    if (row !== '' && row !== due?.name) {
      // One row follows the other without a gap.
      const isTakenOver = due !== undefined && control.recording !== undefined
      await (isTakenOver ? this.#roll(due.name, due.name) : control.endRun(signal))
    }
    if (control.isWaitingToResume) await this.#resume()
    else if (due !== undefined && control.name === '') await this.#start(due.name)
    else if (this.#failedRow !== undefined) this.#forgetFailure()
    this.#tellWaiting(control.scheduleName === '' && control.name !== '' ? (due?.name ?? '') : '')
    await this.#rollWhenDue()
  }

  async #start(row: string): Promise<void> {
    this.#failedRow = row
    await this.#options.control.start({ baseName: row, scheduleName: row }, this.#end.signal)
    this.#failedRow = undefined
  }

  /** The row is over, and its capture is no longer wanted. */
  #forgetFailure(): void {
    this.#options.control.rest()
    this.#failedRow = undefined
  }

  async #resume(): Promise<void> {
    await this.#options.control.resume()
    if (this.#options.control.isWaitingToResume) throw new Error('the capture does not resume yet')
  }

  async #rollWhenDue(): Promise<void> {
    const { control, monotonicMs } = this.#options
    const { recording } = control
    if (recording === undefined) return
    const { capture, counts } = recording
    if (this.#rolling?.capture !== capture) this.#rolling = { capture, clock: this.#rollClockOf(capture) }
    const now = { nowMs: this.#nowMs(), monotonicMs: monotonicMs(), bytes: counts.bytes }
    if (this.#rolling.clock.isDue(now)) await this.#roll(capture.baseName, capture.scheduleName)
  }

  #rollClockOf(capture: RecordedCapture): RollClock {
    const { roll, timeZone, monotonicMs } = this.#options
    const nowMs = this.#nowMs()
    return new RollClock({
      roll,
      timeZone,
      ageMs: this.#ageMs(capture, nowMs),
      nowMs,
      monotonicMs: monotonicMs(),
    })
  }

  /**
   * The clock that dated the capture may be wrong now, or have been wrong then. Both clocks give an age, and the wrong
   * one gives a larger or negative one.
   */
  #ageMs({ startNs }: RecordedCapture, nowMs: number): number {
    const startMs = Number(startNs / NANOS_PER_MS)
    const agesMs = [nowMs - startMs, Number(this.#options.stampNs() / NANOS_PER_MS) - startMs]
    const possibleMs = agesMs.filter((ms) => ms >= 0)
    return possibleMs.length === 0 ? 0 : Math.min(...possibleMs)
  }

  #roll(baseName: string, scheduleName: string): Promise<void> {
    const next = { baseName, scheduleName: scheduleName || undefined }
    return this.#options.control.roll(next, this.#end.signal)
  }

  /** A row that is due takes over when the capture that was started by command is stopped. */
  #tellWaiting(row: string): void {
    if (row !== '' && row !== this.#waitingRow) {
      this.#options.events.append('schedule-waiting', { schedule: row, name: this.#options.control.name })
    }
    this.#waitingRow = row
  }

  /** A disk that is full for hours is logged once, not every second. */
  #noteUpkeep(error: unknown): void {
    const problem = error === undefined ? '' : String(error)
    const { control, log } = this.#options
    if (problem !== '' && problem !== this.#upkeepProblem) {
      log.warn('capture.upkeep-failed', { name: control.name, err: error })
    }
    this.#upkeepProblem = problem
  }

  #nowMs(): number {
    return Number(this.#options.nowNs() / NANOS_PER_MS)
  }
}
