import { ctime } from '../../../src/shared/query/time/ctime.ts'
import { nextRun, runAt, type ScheduleRow, type ScheduleRun } from '../../settings/schedule-rows.ts'
import type { SkippedRun } from './skipped-run.ts'

/** The run of a schedule's row that is due now, for answers and for carrying it out. */
export interface ScheduledRun {
  readonly name: string
  /** When the row stops it, in words; undefined: the row runs all the time. */
  readonly until: string | undefined
}

/** Where a run that was stopped by command is stored. */
export interface SkippedRunStore {
  skippedRun(): Promise<SkippedRun | undefined>
  keepSkippedRun(run: SkippedRun): Promise<void>
}

export interface ScheduleClockOptions {
  readonly rows: readonly ScheduleRow[]
  readonly nowNs: () => bigint
  readonly store: SkippedRunStore
}

const NANOS_PER_MS = 1_000_000n
const MS_PER_SECOND = 1_000

/** What the schedule says should be recorded now. Follows the clock wherever it is set. */
export class ScheduleClock {
  readonly #options: ScheduleClockOptions
  #skipped: SkippedRun | undefined
  /** Rows only change at whole seconds, and evaluating them takes a millisecond. */
  #cached: { readonly second: number; readonly run: ScheduleRun | undefined } | undefined

  private constructor(options: ScheduleClockOptions, skipped: SkippedRun | undefined) {
    this.#options = options
    this.#skipped = skipped
  }

  static async open(options: ScheduleClockOptions): Promise<ScheduleClock> {
    return new ScheduleClock(options, await options.store.skippedRun())
  }

  /** The run that is due now and was not stopped. */
  get due(): ScheduledRun | undefined {
    const run = this.#runNow()
    if (run === undefined || this.#isSkipped(run)) return undefined
    const until = run.endMs === Number.POSITIVE_INFINITY ? undefined : textOf(run)
    return { name: run.row.name, until }
  }

  /** Name of the row that would be running now, had it not been stopped; or "". */
  get skippedRow(): string {
    const run = this.#runNow()
    return run !== undefined && this.#isSkipped(run) ? run.row.name : ''
  }

  /** Skips the run that is due now, until the row's next start. */
  async skip(): Promise<void> {
    const run = this.#runNow()
    if (run === undefined) return
    this.#skipped = { name: run.row.name, startMs: run.startMs, untilMs: skipEnd(run, this.#nowMs()) }
    await this.#options.store.keepSkippedRun(this.#skipped)
  }

  #isSkipped({ row }: ScheduleRun): boolean {
    const [skipped, nowMs] = [this.#skipped, this.#nowMs()]
    return skipped?.name === row.name && skipped.startMs <= nowMs && nowMs < skipped.untilMs
  }

  #runNow(): ScheduleRun | undefined {
    const nowMs = this.#nowMs()
    const second = Math.floor(nowMs / MS_PER_SECOND)
    if (this.#cached?.second !== second) this.#cached = { second, run: runAt(this.#options.rows, nowMs) }
    return this.#cached.run
  }

  #nowMs(): number {
    return Number(this.#options.nowNs() / NANOS_PER_MS)
  }
}

/** The next start of the row, which is within its run if that is longer than a day. */
function skipEnd(run: ScheduleRun, nowMs: number): number {
  const nextStartMs = nextRun(run.row, nowMs)?.startMs ?? run.endMs
  return Math.min(nextStartMs, run.endMs)
}

function textOf({ endMs, row }: ScheduleRun): string {
  return `${ctime(new Date(endMs), row.zone)} ${row.zone}`
}
