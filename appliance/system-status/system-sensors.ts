import type { ApplianceConfig } from '../appliance-config.ts'
import type { StreamLimit } from '../downloads/stream-limit.ts'
import type { CaptureReport } from '../link/capture-report.ts'
import type { RecorderClient } from '../link/recorder-client.ts'
import { BackgroundSensor, type SensorOptions } from '../machine/background-sensor.ts'
import { type ClockReadings, clockReader } from '../machine/clock-sync-sensor.ts'
import { type DiskIo, diskIoReader } from '../machine/disk-io-sensor.ts'
import { type DiskId, type DiskNames, detectDisks } from '../machine/disk-names.ts'
import { type DiskIdentity, readDiskPresence } from '../machine/disk-presence.ts'
import { type MountId, readSpaces, type Space } from '../machine/free-space-sensor.ts'
import { type HostReadings, hostReader } from '../machine/host-sensor.ts'
import { type HwmonReadings, readHwmon, readPowerSupplies } from '../machine/hwmon-sensor.ts'
import { MACHINE_ROOTS, type MachineRoots } from '../machine/kernel-files.ts'
import { detectLinks, type Link, type LinkId, type LinkNames, linkReader } from '../machine/link-sensor.ts'
import { type DiskHealth, readSmart } from '../machine/smart-sensor.ts'
import type { CaptureCatalogue } from '../store/capture-catalogue.ts'
import type { StoredTotals } from './capture-group.ts'
import { ReaderRates } from './reader-rates.ts'
import { storedTotalsReader } from './stored-totals.ts'

export interface SensorParts {
  readonly config: Pick<ApplianceConfig, 'system' | 'store' | 'capture'>
  readonly recorder: RecorderClient
  readonly catalogue: CaptureCatalogue
  readonly slots: StreamLimit
  /** Default: this machine. */
  readonly roots?: MachineRoots
}

const SECOND_MS = 1_000
const FAST = { everyMs: SECOND_MS, limitMs: SECOND_MS } as const
const CALM = { everyMs: 5 * SECOND_MS, limitMs: 4 * SECOND_MS } as const
/** These start programs. */
const CLOCKS = { everyMs: 10 * SECOND_MS, limitMs: 8 * SECOND_MS } as const
/** Querying wakes a sleeping disk. */
const SMART = { everyMs: 300 * SECOND_MS, limitMs: 60 * SECOND_MS } as const

/** All sensors of a device, read in the background; each has a value or none. Ends when disposed. */
export class SystemSensors implements Disposable {
  readonly host: BackgroundSensor<HostReadings>
  readonly hwmon: BackgroundSensor<HwmonReadings>
  readonly supplies: BackgroundSensor<readonly boolean[]>
  readonly disks: BackgroundSensor<ReadonlyMap<DiskId, DiskIdentity>>
  readonly diskHealth: BackgroundSensor<ReadonlyMap<string, DiskHealth>>
  readonly diskIo: BackgroundSensor<DiskIo>
  readonly spaces: BackgroundSensor<ReadonlyMap<MountId, Space>>
  readonly links: BackgroundSensor<ReadonlyMap<LinkId, Link>>
  readonly clocks: BackgroundSensor<ClockReadings>
  readonly capture: BackgroundSensor<CaptureReport>
  readonly stored: BackgroundSensor<StoredTotals>
  readonly rates: ReaderRates
  readonly #owned = new DisposableStack()
  readonly #all: BackgroundSensor<unknown>[] = []

  private constructor(parts: SensorParts, names: Names) {
    const { config, recorder, catalogue, slots, roots = MACHINE_ROOTS } = parts
    const diskNames = Object.values(names.disks)
    this.host = this.#add({ ...FAST, read: hostReader(roots) })
    this.hwmon = this.#add({ ...CALM, read: (signal) => readHwmon(roots, signal) })
    this.supplies = this.#add({ ...CALM, read: (signal) => readPowerSupplies(roots, signal) })
    this.disks = this.#add({ ...CALM, read: (signal) => readDiskPresence(roots, names.disks, signal) })
    this.diskHealth = this.#add({ ...SMART, read: (signal) => readSmart(diskNames, signal) })
    this.diskIo = this.#add({ ...FAST, read: diskIoReader(roots, diskNames) })
    const mounts = { System: '/', Store0: config.store, ...config.system.mounts }
    this.spaces = this.#add({ ...CALM, read: () => readSpaces(mounts) })
    this.links = this.#add({ ...FAST, read: linkReader(roots, names.links) })
    this.clocks = this.#add({ ...CLOCKS, read: clockReader() })
    this.capture = this.#add({ ...FAST, read: (signal) => recorder.captureReport(signal) })
    this.stored = this.#add({ ...FAST, read: storedTotalsReader(catalogue) })
    this.rates = this.#owned.use(new ReaderRates(() => slots.readers))
  }

  /** Detects what the machine has where the configuration does not specify it, and starts reading. */
  static async start(parts: SensorParts): Promise<SystemSensors> {
    const { system, capture } = parts.config
    const { disks, interfaces } = system
    const roots = parts.roots ?? MACHINE_ROOTS
    const limit = AbortSignal.timeout(DETECTION_LIMIT_MS)
    const sensors = new SystemSensors(parts, {
      disks: isEmpty(disks) ? await detectDisks(roots, limit).catch(() => ({})) : disks,
      links: {
        ...(isEmpty(interfaces) ? await detectLinks(roots, limit).catch(() => ({})) : interfaces),
        ...Object.fromEntries(capture.ports.map((port) => [`cap${port.port}`, port.interface])),
      },
    })
    await sensors.#firstReadings()
    return sensors
  }

  /** Called after a command: the status then shows the capture as of after this moment. */
  async captureChanged(): Promise<void> {
    // A reading in progress may be from before.
    await this.capture.refresh()
    await Promise.all([this.capture.refresh(), this.stored.refresh()])
  }

  [Symbol.dispose](): void {
    this.#owned.dispose()
  }

  /** So that the first status is complete; slow sensors are added later. */
  async #firstReadings(): Promise<void> {
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, FIRST_READINGS_LIMIT_MS)
    await Promise.race([Promise.all(this.#all.map((sensor) => sensor.refresh())), late.promise])
    clearTimeout(timer)
  }

  #add<Value>(options: SensorOptions<Value>): BackgroundSensor<Value> {
    const sensor = this.#owned.use(new BackgroundSensor(options))
    this.#all.push(sensor)
    return sensor
  }
}

interface Names {
  readonly disks: DiskNames
  readonly links: LinkNames
}

const DETECTION_LIMIT_MS = 1_000
const FIRST_READINGS_LIMIT_MS = 250

function isEmpty(settings: object): boolean {
  return Object.values(settings).every((value) => value === undefined)
}
