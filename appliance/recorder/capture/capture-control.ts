import { CapfleetError } from '../../../src/shared/base/error.ts'
import { FairLimit } from '../../../src/shared/base/fair-limit.ts'
import type { Log } from '../../../src/shared/base/log.ts'
import type { EventSink } from '../../events/event-log.ts'
import type { CaptureReport, StoppedCapture } from '../../link/capture-report.ts'
import { checkBaseName } from '../../store/capture-names.ts'
import type { ClockHold } from '../../store/clock-record.ts'
import type { StoredCapture } from '../../store/stored-capture.ts'
import type { ScheduleClock, ScheduledRun } from '../clock/schedule-clock.ts'
import type { StoreWriter } from '../writer/store-writer.ts'
import { type CaptureDriver, noPortDriver } from './capture-driver.ts'
import { NO_RATES } from './capture-rates.ts'
import { type RecoveryParts, recoverCapture, recoverOrReplace } from './capture-recovery.ts'
import { CaptureProcessState } from './capture-state.ts'
import { CaptureTally } from './capture-tally.ts'
import { RecordedCapture } from './recorded-capture.ts'
import { type EndedRecording, Recording } from './recording.ts'

export interface CaptureControlOptions {
  readonly driver: CaptureDriver
  readonly schedule: ScheduleClock
  /** IANA name: the zone of the times in capture names. */
  readonly timeZone: string
  readonly nowNs: () => bigint
  /** Changes with each boot of the machine. */
  readonly bootId: string
  readonly events: EventSink
  readonly log: Log
  /** Called when the record of the running capture has gained a segment. */
  readonly onSegmentFinished: () => void
  /** Fails with store-full while no packet may be accepted. */
  readonly checkRoom: () => void
  /** Aborts when the recorder is told to end while open() is still in progress. */
  readonly startSignal?: AbortSignal | undefined
  /** See CaptureReport.clockHold. */
  readonly clockHold: () => ClockHold
}

export interface CaptureStart {
  readonly baseName: string
  /** Row of the schedule that starts it; absent = started by command. */
  readonly scheduleName?: string | undefined
}

/**
 * The capture of a device: at most one at a time, from start to stop, across restarts of the recorder. Commands are
 * executed one after another, in order of arrival. The store holds the desired state: a record in state "active" is a
 * capture that is resumed when the recorder comes back, with retries until that succeeds. Owned by the recorder.
 */
export class CaptureControl implements AsyncDisposable {
  readonly #writer: StoreWriter
  readonly #options: CaptureControlOptions
  readonly #state: CaptureProcessState
  readonly #turn = new FairLimit({ places: 1 })
  #recording: Recording | undefined
  /** An active capture of an earlier recorder that has not been resumed yet. */
  #left: StoredCapture | undefined
  /** Why the running capture is being suspended, until that is done. */
  #noRoom: unknown

  private constructor(writer: StoreWriter, options: CaptureControlOptions) {
    this.#writer = writer
    this.#options = options
    this.#state = new CaptureProcessState(options)
  }

  /** Resumes the capture that is active according to the store, unless it belongs to a row whose time is over. */
  static async open(writer: StoreWriter, options: CaptureControlOptions): Promise<CaptureControl> {
    const control = new CaptureControl(writer, options)
    const [newest, ...older] = await writer.activeCaptures()
    const row = newest?.scheduleName ?? ''
    const isOver = row !== '' && options.schedule.due?.name !== row
    for (const record of isOver && newest !== undefined ? [newest, ...older] : older) {
      if (options.startSignal?.aborted) break
      await control.#closeLeft(record).catch((error: unknown) => control.#state.tell(error, record.name))
    }
    control.#left = isOver ? undefined : newest
    await control.resume()
    return control
  }

  /** Whether an active capture of an earlier recorder has not been resumed yet; resume() may be retried. */
  get isWaitingToResume(): boolean {
    return this.#left !== undefined
  }

  /** The capture that packets are written to, or undefined. */
  get recording(): Recording | undefined {
    return this.#recording
  }

  /** Full name of the capture that is being recorded, or is to be resumed; "" = none. */
  get name(): string {
    return this.#recording?.capture.name ?? this.#left?.name ?? ''
  }

  /** Row of the schedule that started it; "" = started by command, or none. */
  get scheduleName(): string {
    return this.#recording?.capture.scheduleName ?? this.#left?.scheduleName ?? ''
  }

  /**
   * Fails with bad-parameter, capture-running, capture-unavailable, store-full; or with an error of the store: the
   * state is then "error", nothing is left of the capture, and start may be retried.
   */
  async start(start: CaptureStart, signal: AbortSignal): Promise<CaptureReport> {
    checkBaseName(start.baseName)
    using _turn = await this.#turn.acquire(signal)
    if (this.name !== '') throw captureRunning(this.name)
    this.#state.enter('starting', this.name)
    try {
      const { driver, events, checkRoom } = this.#options
      checkRoom()
      const capture = await this.#makeCapture(start)
      this.#recording = await capture.keepIf(Recording.begin(driver, capture, events))
      this.#state.enter('running', this.name)
    } catch (error) {
      this.#state.fail('error', error, start.baseName)
      throw error
    }
    this.#options.events.append('capture-started', { name: this.name, schedule: this.scheduleName })
    return this.report()
  }

  /**
   * Stops the capture. If the schedule started it, this needs `stopsScheduled` (otherwise it fails with
   * capture-scheduled), and the row is then skipped until its next start. If there is no capture, it fails with
   * capture-not-running; if a start had failed, the state becomes "idle" again. Fails like store and driver: the state
   * is then "error".
   */
  async stop(stopsScheduled: boolean, signal: AbortSignal): Promise<StoppedCapture> {
    using _turn = await this.#turn.acquire(signal)
    const row = this.scheduleName
    if (row !== '' && !stopsScheduled) throw captureScheduled(this.name, row, this.#options.schedule.due)
    if (row !== '') await this.#options.schedule.skip()
    return await this.#stop()
  }

  /** Called when the row that started the capture has ended. */
  async endRun(signal: AbortSignal): Promise<void> {
    using _turn = await this.#turn.acquire(signal)
    if (this.scheduleName !== '') await this.#stop()
  }

  /** Nothing should run any more, so a start that failed is no longer an error. */
  rest(): void {
    if (this.name === '' && this.#state.state === 'error') this.#state.enter('idle', '')
  }

  /**
   * Packets are written to a new capture from one moment on; none is lost or in both. On failure the old one
   * continues. Fails with capture-not-running; or like store and driver.
   */
  async roll(next: CaptureStart, signal: AbortSignal): Promise<void> {
    using _turn = await this.#turn.acquire(signal)
    if (this.#recording === undefined) throw captureNotRunning()
    this.#state.enter('rolling', this.name)
    try {
      const capture = await this.#makeCapture(next)
      const ended = await capture.keepIf(this.#recording.rollTo(capture))
      await this.#closeRolled(ended)
      this.#state.enter('running', this.name)
    } catch (error) {
      this.#state.fail('running', error, this.name)
      throw error
    }
  }

  /** Tries to resume the active capture of an earlier recorder. Never rejects: the state is then "error". */
  async resume(): Promise<void> {
    using _turn = await this.#turn.acquire(UNTIL_DONE)
    const record = this.#left
    if (record === undefined || this.#options.startSignal?.aborted) return
    try {
      const { driver, events, checkRoom } = this.#options
      checkRoom()
      const { baseName = record.name, scheduleName } = record
      const replace = () => this.#makeCapture({ baseName, scheduleName })
      const capture = await recoverOrReplace(this.#recoveryParts, record, replace)
      this.#left = (await this.#writer.captureOf(capture.name)) ?? record
      this.#recording = await Recording.begin(driver, capture, events)
      this.#left = undefined
      this.#state.enter('running', this.name)
      events.append('capture-resumed', { name: this.name })
    } catch (error) {
      // The next recorder tries again.
      if (this.#options.startSignal?.aborted) return
      this.#state.fail('error', error, record.name)
    }
  }

  /**
   * Accepts no more packets if there is no room for them: the state is "error" until resume() finds some. A failed
   * step is repeated by the next call, even if there is room again, because the driver may have ended already.
   */
  async suspendWithoutRoom(): Promise<void> {
    this.#noRoom ??= this.#roomProblem()
    if (this.#noRoom === undefined) return
    using _turn = await this.#turn.acquire(UNTIL_DONE)
    if (this.#recording !== undefined) await this.#suspend(this.#recording, this.#noRoom)
    this.#noRoom = undefined
  }

  /** Called several times a second; `monotonicMs` is from a clock that never steps. */
  async upkeep(monotonicMs: number): Promise<void> {
    this.#recording?.observe(monotonicMs)
    // If another call is changing the capture, the next upkeep is soon enough.
    using turn = this.#turn.tryAcquire()
    if (turn === undefined || this.#recording === undefined) return
    if (await this.#recording.takeSegments(monotonicMs)) this.#options.onSegmentFinished()
  }

  report(): CaptureReport {
    const { driver, schedule } = this.#options
    const recording = this.#recording
    const isManual = this.name !== '' && this.scheduleName === ''
    return {
      state: this.#state.state,
      name: this.name,
      baseName: recording?.capture.baseName ?? this.#left?.baseName ?? '',
      scheduleName: this.scheduleName,
      startNs: recording?.capture.startNs ?? this.#left?.startNs ?? 0n,
      ports: [...driver.ports],
      counts: recording?.counts ?? NO_COUNTS,
      message: this.#state.message || (recording?.problem ?? ''),
      waitingRow: isManual ? (schedule.due?.name ?? '') : '',
      skippedRow: schedule.skippedRow,
      clockHold: this.#options.clockHold(),
    }
  }

  /** Ends the recording but not the capture: the next recorder resumes it. */
  async [Symbol.asyncDispose](): Promise<void> {
    using _turn = await this.#turn.acquire(AbortSignal.timeout(DISPOSE_LIMIT_MS))
    await this.#saveRecording()
    this.#recording = undefined
  }

  #roomProblem(): unknown {
    try {
      this.#options.checkRoom()
      return undefined
    } catch (error) {
      return error
    }
  }

  async #suspend({ capture }: Recording, reason: unknown): Promise<void> {
    // Before the recording ends, which takes as long as the disk needs.
    this.#state.fail('error', reason, capture.name)
    await this.#saveRecording()
    this.#left = await this.#writer.captureOf(capture.name)
    this.#recording = undefined
  }

  /** Ends the recording; the capture stays active in the store. */
  async #saveRecording(): Promise<void> {
    const ended = await this.#recording?.end()
    await ended?.capture.save(ended.streams, ended.drops)
  }

  #makeCapture({ baseName, scheduleName }: CaptureStart): Promise<RecordedCapture> {
    const { driver, nowNs, timeZone, bootId } = this.#options
    const description =
      driver.ports.length === 0 ? 'no capture port is configured: this capture will stay empty' : ''
    const name = { baseName, scheduleName, timeZone, startNs: nowNs() }
    return RecordedCapture.make(this.#writer, { ...name, bootId, description })
  }

  async #stop(): Promise<StoppedCapture> {
    if (this.name === '') {
      this.rest()
      throw captureNotRunning()
    }
    this.#state.enter('stopping', this.name)
    try {
      const stopped = await this.#close()
      this.#state.enter('idle', this.name)
      const { name, packets, drops } = stopped
      const figures = { packets: String(packets), drops: String(drops) }
      this.#options.events.append('capture-stopped', { name, ...figures })
      return stopped
    } catch (error) {
      this.#state.fail('error', error, this.name)
      throw error
    }
  }

  /** A failed step can be retried. */
  async #close(): Promise<StoppedCapture> {
    const ended = await this.#recording?.end()
    const stopped = ended
      ? await ended.capture.close(ended.streams, ended.drops, this.#options.nowNs())
      : await this.#closeLeft(this.#left)
    this.#recording = undefined
    this.#left = undefined
    return stopped
  }

  /** Packets are written to the new capture already, so a failure here must not affect it. */
  async #closeRolled({ capture, streams, drops }: EndedRecording): Promise<void> {
    const { events, nowNs } = this.#options
    try {
      const { packets } = await capture.close(streams, drops, nowNs())
      events.append('capture-rolled', { name: this.name, previous: capture.name, packets: String(packets) })
    } catch (error) {
      // It stays active in the store: the next recorder closes it.
      this.#state.tell(error, capture.name)
    }
  }

  /** Closes what an earlier recorder left, as of its last packet. */
  async #closeLeft(record: StoredCapture | undefined): Promise<StoppedCapture> {
    if (record === undefined) throw captureNotRunning()
    const capture = await recoverCapture(this.#recoveryParts, record)
    return await capture.close([], record.drops ?? NO_DROPS, record.startNs)
  }

  get #recoveryParts(): RecoveryParts {
    return { ...this.#options, writer: this.#writer }
  }
}

const UNTIL_DONE = new AbortController().signal
const NO_DROPS = { ring: 0n, disk: 0n }
const NO_COUNTS = CaptureTally.start(new Map(), undefined).countsOf(noPortDriver.counts(), NO_RATES)

/** The report of a recorder that has not opened its capture yet. */
export const STARTING_REPORT: CaptureReport = {
  state: 'starting',
  name: '',
  baseName: '',
  scheduleName: '',
  startNs: 0n,
  ports: [],
  counts: NO_COUNTS,
  message: 'the recorder is starting',
  waitingRow: '',
  skippedRow: '',
  clockHold: '',
}

/** Commands that have begun are allowed to finish; a driver that hangs must not keep the recorder running. */
const DISPOSE_LIMIT_MS = 10_000

function captureRunning(name: string): CapfleetError {
  return new CapfleetError('capture-running', `${name} is running; stop it first`, {
    members: { StreamName: name },
  })
}

function captureNotRunning(): CapfleetError {
  return new CapfleetError('capture-not-running', 'no capture is running; there is nothing to stop')
}

function captureScheduled(name: string, row: string, run: ScheduledRun | undefined): CapfleetError {
  const end = run?.until === undefined ? '' : ` until ${run.until}`
  return new CapfleetError(
    'capture-scheduled',
    `${name} runs by the schedule row ${row}${end}; add Until=next to stop today's run`,
    { members: { StreamName: name, ScheduleName: row } },
  )
}
