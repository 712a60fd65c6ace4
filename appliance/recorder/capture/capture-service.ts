import { clockNs } from '../../../native/addon.ts'
import { readBootId } from '../../../src/shared/base/boot-id.ts'
import type { Log } from '../../../src/shared/base/log.ts'
import type { EventSink } from '../../events/event-log.ts'
import type { CaptureConfig } from '../../settings/capture-config.ts'
import type { ClockHold } from '../../store/clock-record.ts'
import { ScheduleClock } from '../clock/schedule-clock.ts'
import type { StoreWriter } from '../writer/store-writer.ts'
import { CaptureControl } from './capture-control.ts'
import { type CaptureDriver, noPortDriver } from './capture-driver.ts'
import { CaptureKeeper } from './capture-keeper.ts'
import { livePorts } from './live-ports.ts'
import { PortDriver } from './port-driver.ts'

export interface CaptureServiceOptions {
  readonly config: CaptureConfig
  /** IANA name of the device's zone. */
  readonly timeZone: string
  readonly events: EventSink
  readonly log: Log
  /** Default: the configured ports of this machine. */
  readonly driver?: CaptureDriver | undefined
  readonly nowNs?: (() => bigint) | undefined
  /** The time that schedule and rolls follow. */
  readonly scheduleNs: () => bigint
  readonly clockHold: () => ClockHold
  /** See CaptureControlOptions. */
  readonly onSegmentFinished: () => void
  readonly checkRoom: () => void
  readonly startSignal?: AbortSignal | undefined
}

/** The capture of a device, kept in the state required by commands, schedule and rolls, until disposed. */
export class CaptureService implements AsyncDisposable {
  readonly control: CaptureControl
  readonly #owned: AsyncDisposableStack

  private constructor(control: CaptureControl, owned: AsyncDisposableStack) {
    this.control = control
    this.#owned = owned
  }

  /** Everything that should run does, or is being retried. Fails with bad-config for a filter that does not compile. */
  static async open(writer: StoreWriter, options: CaptureServiceOptions): Promise<CaptureService> {
    await using owned = new AsyncDisposableStack()
    const { config, scheduleNs, nowNs = clockNs } = options
    const [driver, bootId] = await Promise.all([options.driver ?? driverOf(config), readBootId()])
    const schedule = await ScheduleClock.open({ rows: config.schedule, nowNs: scheduleNs, store: writer })
    const control = owned.use(
      await CaptureControl.open(writer, { ...options, driver, schedule, nowNs, bootId }),
    )
    const monotonicMs = (): number => performance.now()
    const keeper = owned.use(
      new CaptureKeeper({
        ...options,
        control,
        schedule,
        roll: config.roll,
        nowNs: scheduleNs,
        stampNs: nowNs,
        monotonicMs,
      }),
    )
    keeper.begin()
    return new CaptureService(control, owned.move())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync()
  }
}

async function driverOf(config: CaptureConfig): Promise<CaptureDriver> {
  if (config.ports.length === 0) return noPortDriver
  const { segmentBytes, syncIntervalMs, queueBytes } = config
  return new PortDriver({ ports: await livePorts(config.ports), segmentBytes, syncIntervalMs, queueBytes })
}
