import { CapfleetError } from '../src/base/error.ts'
import type { Log } from '../src/base/log.ts'
import type { CaptureDriver } from './capture-driver.ts'
import { checkBaseName, fullCaptureNames } from './capture-names.ts'
import type { CaptureRecord } from './capture-record.ts'
import type { CaptureReport, CaptureState } from './capture-report.ts'
import { FifoLimit } from './fifo-limit.ts'
import type { StoreWriter } from './store-writer.ts'

export interface CaptureControlOptions {
  readonly driver: CaptureDriver
  /** IANA name: the zone of the times in capture names. */
  readonly timeZone: string
  readonly nowNs: () => bigint
  readonly log: Log
}

/** The row of a schedule that starts a capture, for answers. */
export interface ScheduledRun {
  readonly name: string
  /** When the row stops it, in words. */
  readonly until: string
}

export interface CaptureStart {
  readonly baseName: string
  readonly schedule?: ScheduledRun
}

/** A capture that has ended. */
export interface StoppedCapture {
  readonly name: string
  readonly baseName: string
  readonly stopNs: bigint
  readonly packets: bigint
  readonly bytes: bigint
}

interface Running {
  readonly record: CaptureRecord
  readonly schedule: ScheduledRun | undefined
}

/**
 * The capture of a device: at most one at a time, from start to stop, over restarts of the recorder.
 * Commands are carried out one after the other, in the order of their arrival. What is in the store
 * says what is wanted: a record in state "active" is a capture that goes on when the recorder comes
 * back. Owned by the recorder.
 */
export class CaptureControl implements AsyncDisposable {
  readonly #writer: StoreWriter
  readonly #options: CaptureControlOptions
  readonly #turn = new FifoLimit(1)
  #state: CaptureState = 'idle'
  #running: Running | undefined
  #message = ''

  private constructor(writer: StoreWriter, options: CaptureControlOptions) {
    this.#writer = writer
    this.#options = options
  }

  /** Goes on with the capture that the store says is active. */
  static async open(writer: StoreWriter, options: CaptureControlOptions): Promise<CaptureControl> {
    const control = new CaptureControl(writer, options)
    const [newest, ...older] = await writer.activeCaptures()
    for (const record of older) await writer.replaceRecord({ ...record, state: 'closed' })
    if (newest !== undefined) await control.#resume(newest)
    return control
  }

  /**
   * Fails with bad-parameter, capture-running; or as store and driver say: the state is then
   * "error", nothing is left of the capture, and a further start may try again.
   */
  async start({ baseName, schedule }: CaptureStart, signal: AbortSignal): Promise<CaptureReport> {
    checkBaseName(baseName)
    using _turn = await this.#turn.acquire(signal)
    if (this.#running !== undefined) throw captureRunning(this.#running.record.name)
    this.#enter('starting')
    try {
      const record = await this.#makeCapture(baseName)
      await this.#run({ record, schedule })
      this.#enter('running')
    } catch (error) {
      this.#enter('error', error)
      throw error
    }
    return this.report()
  }

  /**
   * Fails with capture-not-running, and with capture-scheduled unless `stopsScheduled`; or as store
   * and driver say: the state is then "error".
   */
  async stop(stopsScheduled: boolean, signal: AbortSignal): Promise<StoppedCapture> {
    using _turn = await this.#turn.acquire(signal)
    const running = this.#running
    if (running === undefined) throw captureNotRunning()
    if (running.schedule !== undefined && !stopsScheduled) {
      throw captureScheduled(running.record.name, running.schedule)
    }
    this.#enter('stopping')
    try {
      const stopped = await this.#close(running)
      this.#enter('idle')
      return stopped
    } catch (error) {
      this.#enter('error', error)
      throw error
    }
  }

  report(): CaptureReport {
    const running = this.#running
    const { driver } = this.#options
    return {
      state: this.#state,
      name: running?.record.name ?? '',
      baseName: running?.record.baseName ?? '',
      scheduleName: running?.schedule?.name ?? '',
      startNs: running?.record.startNs ?? 0n,
      ports: [...driver.ports],
      counts: { ...driver.counts(), ports: [...driver.counts().ports] },
      message: this.#message,
    }
  }

  /** Ends the recording but not the capture: the next recorder goes on with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    using _turn = await this.#turn.acquire(AbortSignal.timeout(DISPOSE_LIMIT_MS))
    if (this.#running !== undefined) await this.#options.driver.stop()
    this.#running = undefined
  }

  async #makeCapture(baseName: string): Promise<CaptureRecord> {
    const startNs = this.#options.nowNs()
    for (const name of fullCaptureNames(baseName, startNs, this.#options.timeZone)) {
      const record = this.#newRecord(name, baseName, startNs)
      if (await this.#writer.makeCapture(record)) return record
    }
    throw new Error('the names do not end')
  }

  #newRecord(name: string, baseName: string, startNs: bigint): CaptureRecord {
    const isEmpty = this.#options.driver.ports.length === 0
    return {
      format: 1,
      name,
      type: 'capture',
      state: 'active',
      description: isEmpty ? 'no capture port is configured: this capture stays empty' : '',
      baseName,
      createdAt: new Date(Number(startNs / 1_000_000n)).toISOString(),
      startNs,
      endNs: startNs + 1n,
      packets: 0n,
      bytes: 0n,
      streams: [],
      sources: [],
      packetsOutOfTimeRange: 0n,
      damages: [],
    }
  }

  /** Starts the driver; a capture that never began leaves nothing behind. */
  async #run(running: Running): Promise<void> {
    try {
      await this.#startDriver(running)
    } catch (error) {
      await this.#writer.deleteCapture(running.record.name)
      throw error
    }
  }

  async #startDriver(running: Running): Promise<void> {
    const { name } = running.record
    const target = { name, folder: this.#writer.folderOf(running.record) }
    await this.#options.driver.start(target, (error) => void this.#onFailure(running, error))
    this.#running = running
  }

  async #resume(record: CaptureRecord): Promise<void> {
    try {
      await this.#startDriver({ record, schedule: undefined })
      this.#enter('running')
      this.#options.log.info('capture.resumed', { name: record.name })
    } catch (error) {
      await this.#writer.replaceRecord({ ...record, state: 'closed' })
      this.#enter('error', error)
    }
  }

  /** The driver gave up: what it captured is kept. */
  async #onFailure(running: Running, error: Error): Promise<void> {
    try {
      using _turn = await this.#turn.acquire(new AbortController().signal)
      if (this.#running !== running) return
      this.#enter('error', error)
      await this.#close(running)
    } catch (cause) {
      this.#options.log.error('capture.close-failed', { name: running.record.name, err: cause })
    }
  }

  async #close(running: Running): Promise<StoppedCapture> {
    const { driver, nowNs } = this.#options
    const { streams } = await driver.stop()
    const { record } = running
    const segments = streams.flatMap((stream) => stream.segments)
    const packets = segments.reduce((sum, segment) => sum + segment.packets, 0n)
    const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0n)
    const [startNs = record.startNs] = inOrder([record.startNs, ...segments.map(({ minNs }) => minNs)])
    const ends = inOrder([nowNs(), record.endNs, ...segments.map(({ maxNs }) => maxNs + 1n)])
    const stopNs = ends.at(-1) ?? record.endNs
    await this.#writer.replaceRecord({
      ...record,
      state: 'closed',
      streams: [...streams],
      packets,
      bytes,
      startNs,
      endNs: stopNs,
    })
    // Only now: a stop that failed can be tried again.
    this.#running = undefined
    return { name: record.name, baseName: record.baseName ?? record.name, stopNs, packets, bytes }
  }

  #enter(state: CaptureState, error?: unknown): void {
    this.#state = state
    this.#message = error === undefined ? '' : error instanceof Error ? error.message : String(error)
    const fields = { state, name: this.#running?.record.name, err: error }
    if (state === 'error') this.#options.log.error('capture.error', fields)
    else this.#options.log.info('capture.state', fields)
  }
}

/** Commands that have begun are let finish; a driver that hangs must not keep the recorder alive. */
const DISPOSE_LIMIT_MS = 10_000

/** Smallest first. */
function inOrder(times: readonly bigint[]): readonly bigint[] {
  return times.toSorted((a, b) => Number(a - b))
}

function captureRunning(name: string): CapfleetError {
  return new CapfleetError('capture-running', `${name} is running; stop it first`, {
    members: { StreamName: name },
  })
}

function captureNotRunning(): CapfleetError {
  return new CapfleetError('capture-not-running', 'no capture is running; there is nothing to stop')
}

function captureScheduled(name: string, { name: row, until }: ScheduledRun): CapfleetError {
  return new CapfleetError(
    'capture-scheduled',
    `${name} runs by the schedule row ${row} until ${until}; add Until=next to stop today's run`,
    { members: { StreamName: name, ScheduleName: row } },
  )
}
