import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { Log } from '../../../shared/base/log.ts'
import type { DeviceClient, TimeLimit } from '../../device/device-client.ts'
import type { DeviceKind } from '../../device/device-kind.ts'
import { ClockFilter } from './clock-filter.ts'
import type { DeviceBreaker } from './device-breaker.ts'
import {
  CLOCK_PATH,
  type ClockOffset,
  type DeviceStatus,
  type LackingPath,
  OLDEST_PATH,
  probeClock,
  probeOldestPacket,
  probeStatus,
  probeStatusOrLack,
  probeVersion,
  STATUS_PATH,
  VERSION_PATH,
} from './device-probe.ts'

export interface HealthSettings {
  /** Interval from the start of one probe to the start of the next. */
  readonly intervalMs: number
  /** Time limit for the device to answer each question of a probe. */
  readonly timeoutMs: number
}

/**
 * What the last probe found, or that the device has vanished and is not probed. The facts below `error` are kept while
 * the device is unreachable, except for its status.
 */
export interface HealthReport {
  /** Undefined before the first probe has ended. */
  readonly reachable: boolean | undefined
  /** When the device became reachable or unreachable, according to probes. */
  readonly since: Date | undefined
  /** When the last probe ended. */
  readonly probedAt: Date | undefined
  /** How long the version request took. */
  readonly probeMs: number | undefined
  /** Why the device is not reachable. */
  readonly error: CapfleetError | undefined
  readonly version: string | undefined
  readonly kind: DeviceKind | undefined
  /** Serial number of the appliance, if it reports one. */
  readonly serial: string | undefined
  readonly clock: ClockOffset | undefined
  /** What the device itself reports; its readers include those of other clients. */
  readonly status: DeviceStatus | undefined
  readonly oldestPacketNs: bigint | undefined
  /** Paths that the device did not answer, or not as the API specifies, at the last probe. */
  readonly lacks: readonly LackingPath[]
}

export interface HealthOptions {
  /** A client for probes alone, because a device whose other connections are all in use is not down. */
  readonly client: DeviceClient
  readonly breaker: DeviceBreaker
  readonly settings: HealthSettings
  readonly log: Log
  /**
   * Called when probes see the device become unreachable or reachable; not for a device that is reachable from the
   * first probe.
   */
  readonly onChange: (report: HealthReport) => void
}

/** Fraction of the interval by which probes vary, to spread those of many devices and replicas. */
const JITTER = 0.1
/** One probe in this many asks for what changes slowly. */
const SLOW_EVERY = 12
/** Minimum interval between two probes, even unscheduled ones. */
const SOON_MS = 500

const NOTHING_KNOWN: HealthReport = {
  reachable: undefined,
  since: undefined,
  probedAt: undefined,
  probeMs: undefined,
  error: undefined,
  version: undefined,
  kind: undefined,
  serial: undefined,
  clock: undefined,
  status: undefined,
  oldestPacketNs: undefined,
  lacks: [],
}

/**
 * Probes a device while it belongs to the fleet, except while it has vanished; takes no stream and waits in no queue.
 */
export class DeviceHealth {
  readonly #options: HealthOptions
  readonly #closing = new AbortController()
  readonly #clock = new ClockFilter()
  #clockBasisMs = 0
  readonly #firstProbe = Promise.withResolvers<void>()
  readonly #probing: Promise<void>
  #report = NOTHING_KNOWN
  /** The problem of each lacking path, by path. */
  readonly #lacks = new Map<string, string>()
  #hurry = new AbortController()

  constructor(options: HealthOptions) {
    this.#options = options
    this.#probing = this.#run()
  }

  get report(): HealthReport {
    return this.#report
  }

  /** How far this host's clock was ahead of its monotonic clock when the offset of the device's clock was measured. */
  get clockBasisMs(): number {
    return this.#clockBasisMs
  }

  /** Resolves when the device has been probed once, or will never be probed again. */
  get probedOnce(): Promise<void> {
    return this.#firstProbe.promise
  }

  /** How many downloads the device has now, or undefined if it never reports that. Fails if it cannot be asked. */
  async readers(): Promise<number | undefined> {
    return (await probeStatus(this.#options.client, this.#limit)).readers
  }

  /** Makes the next probe run now instead of on schedule. */
  probeSoon(): void {
    this.#hurry.abort()
  }

  async close(): Promise<void> {
    this.#closing.abort(new CapfleetError('draining', 'the device is no longer probed'))
    await this.#probing
    this.#options.client.close()
  }

  get #name(): string {
    return this.#options.client.device.name
  }

  get #limit(): TimeLimit {
    return { timeoutMs: this.#options.settings.timeoutMs, signal: this.#closing.signal }
  }

  async #run(): Promise<void> {
    for (let round = 0; !this.#closing.signal.aborted; round += 1) {
      const startedMs = performance.now()
      const wasUp = this.#report.reachable === true
      if (await this.#probeLife()) await this.#probeFacts(!wasUp || round % SLOW_EVERY === 0)
      this.#firstProbe.resolve()
      await this.#pause(startedMs)
    }
    this.#firstProbe.resolve()
  }

  async #pause(startedMs: number): Promise<void> {
    const jitter = 1 + JITTER * (2 * Math.random() - 1)
    const leftMs = this.#options.settings.intervalMs * jitter - (performance.now() - startedMs)
    const closing = this.#closing.signal
    await sleep(SOON_MS, closing)
    await sleep(leftMs - SOON_MS, AbortSignal.any([closing, this.#hurry.signal]))
    this.#hurry = new AbortController()
  }

  /** Whether the device answers; nothing else decides whether it is reachable. */
  async #probeLife(): Promise<boolean> {
    const { absence } = this.#options.client.device
    if (absence !== undefined) return this.#changeToDown({ error: absence })
    const askedMs = performance.now()
    try {
      const { version, kind, lack } = await probeVersion(this.#options.client, this.#limit)
      this.#note(VERSION_PATH, lack?.detail)
      this.#options.breaker.probed()
      const probeMs = performance.now() - askedMs
      this.#change(true, { version, kind, error: undefined, probeMs, probedAt: new Date() })
      return true
    } catch (error) {
      if (this.#closing.signal.aborted || !(error instanceof CapfleetError)) return false
      this.#options.breaker.probeFailed(error)
      return this.#changeToDown({ error, probedAt: new Date() })
    }
  }

  #changeToDown(found: Partial<HealthReport>): false {
    this.#change(false, { ...found, probeMs: undefined, status: undefined })
    return false
  }

  #change(reachable: boolean, found: Partial<HealthReport>): void {
    const before = this.#report
    const since = before.reachable === reachable ? before.since : new Date()
    this.#report = { ...before, ...found, reachable, since }
    if (before.reachable === reachable) return
    const { log, onChange } = this.#options
    if (reachable) log.info('device.up', { device: this.#name, version: this.#report.version })
    else
      log.warn('device.down', { device: this.#name, code: found.error?.code, message: found.error?.message })
    if (!reachable || before.reachable === false) onChange(this.#report)
  }

  /** Asks for the facts. What a device does not report stays unknown, which is not a failure. */
  async #probeFacts(slowToo: boolean): Promise<void> {
    const { client } = this.#options
    // First and alone: on a warm connection its round trip, and so its error, is the shortest.
    const [probed] = await Promise.allSettled([probeClock(client, this.#limit)])
    const offset = foundOf(probed)
    this.#note(CLOCK_PATH, failureOf(probed))
    if (offset !== undefined) {
      this.#clock.add(offset, performance.now())
      this.#clockBasisMs = Date.now() - performance.now()
    }
    const [probedStatus, oldest] = await Promise.allSettled([
      probeStatusOrLack(client, this.#limit),
      slowToo ? probeOldestPacket(client, this.#limit) : this.#report.oldestPacketNs,
    ])
    const { status: told, lack } = foundOf(probedStatus) ?? {}
    this.#note(STATUS_PATH, lack?.detail ?? failureOf(probedStatus))
    if (slowToo) this.#note(OLDEST_PATH, failureOf(oldest))
    this.#report = {
      ...this.#report,
      // The device may have been unable to answer.
      serial: told === undefined ? this.#report.serial : told.serial,
      clock: offset && this.#clock.best(performance.now()),
      status: told,
      oldestPacketNs: foundOf(oldest),
      lacks: Array.from(this.#lacks, ([path, detail]) => ({ path, detail })),
    }
  }

  #note(path: string, failure: string | undefined): void {
    if (failure === undefined) this.#lacks.delete(path)
    else this.#lacks.set(path, failure)
  }
}

function foundOf<Value>(settled: PromiseSettledResult<Value>): Value | undefined {
  return settled.status === 'fulfilled' ? settled.value : undefined
}

function failureOf(settled: PromiseSettledResult<unknown>): string | undefined {
  return settled.status === 'fulfilled' ? undefined : (settled.reason as Error).message
}

/** Waits; resolves early if the signal aborts. */
async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, ms), undefined, { signal }).catch(() => undefined)
}
