import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import type { Device, FetchCompression } from '../device/device.ts'
import { DeviceClient, type ListLimits } from '../device/device-client.ts'
import type { DeviceKind, IgnorableParameter } from '../device/device-kind.ts'
import { DeviceCaptures } from './captures/device-captures.ts'
import { LargeAnswers } from './captures/large-answers.ts'
import { discoveryPending } from './discovery-pending.ts'
import { DeviceBreaker } from './health/device-breaker.ts'
import { DeviceHealth, type HealthReport } from './health/device-health.ts'
import type { ClockOffset } from './health/device-probe.ts'
import { notInFleet } from './unknown-device.ts'

/** A device of the fleet with what the gateway needs to talk to it. */
export interface FleetMember {
  readonly device: Device
  readonly client: DeviceClient
  readonly health: DeviceHealth
  readonly breaker: DeviceBreaker
  readonly captures: DeviceCaptures
}

/** As configured, or as its answers show; undefined: not known yet. */
export function kindOfMember({ device, health }: FleetMember): DeviceKind | undefined {
  return device.kind ?? health.report.kind
}

export interface FleetOptions {
  readonly connectTimeoutMs: number
  /** A device that sends nothing for this long has failed. */
  readonly idleTimeoutMs: number
  /** Time limit for a device to answer a probe, to begin a list, and for each MiB of a list. */
  readonly probeTimeoutMs: number
  /** Time limit for a device's whole list. */
  readonly listTimeoutMs: number
  readonly probeIntervalMs: number
  /** Number of consecutive failed probes after which the gateway gives the device up until it answers one. */
  readonly failuresMax: number
  /** The largest capture list that is accepted from a device. */
  readonly lists: ListLimits
  /** Maximum number of large answers that are read concurrently, over all devices. */
  readonly largeAnswersMax: number
  readonly log: Log
}

/** What a new list of devices changed, by name. */
export interface FleetChange {
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

export interface FleetReplacement {
  /** Devices that can be found by name, but no longer belong to the fleet. Default: none. */
  readonly leaving?: readonly Device[]
  /** Whether every discovery has reported its devices. Default: true. */
  readonly isComplete?: boolean
}

/** Receives changes of the fleet immediately. */
export interface FleetListener {
  /** Called when the list of devices has changed. */
  replaced(): void
  /** As DeviceHealth's onChange. */
  cameOrWent(device: Device, report: HealthReport): void
}

/** The devices that the gateway knows now, in an order that all requests share. */
export class Fleet implements AsyncDisposable {
  /** Capture lists that are being read and are not small. */
  readonly largeAnswers: LargeAnswers
  readonly #options: FleetOptions
  #members: ReadonlyMap<string, FleetMember> = new Map()
  #devices: readonly Device[] = []
  #present: ReadonlySet<string> = new Set()
  #isComplete = false
  readonly #listeners = new Set<FleetListener>()

  constructor(options: FleetOptions) {
    this.#options = options
    this.largeAnswers = new LargeAnswers(options.largeAnswersMax)
  }

  get devices(): readonly Device[] {
    return this.#devices
  }

  /** Whether these are all devices: false until each discovery has answered once. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** The members of the fleet, in its order. */
  get members(): readonly FleetMember[] {
    return this.#devices.map((device) => this.get(device.name))
  }

  /** The member of this name, even if it is leaving. */
  find(name: string): FleetMember | undefined {
    return this.#members.get(name)
  }

  /**
   * Like find(), but fails with unknown-device, because a device may be removed after it was selected; or with
   * discovery-pending.
   */
  get(name: string): FleetMember {
    const member = this.find(name)
    if (member !== undefined) return member
    throw notInFleet(this, name)
  }

  /** The member for a new request, which must not be leaving. Fails like get(). */
  choose(name: string): FleetMember {
    if (this.#present.has(name)) return this.get(name)
    throw notInFleet(this, name)
  }

  /**
   * See DeviceHealth.readers(); also undefined for a device that has left the fleet. Fails with discovery-pending
   * while a discovery may still report it.
   */
  async readersOf(name: string): Promise<number | undefined> {
    const member = this.find(name)
    if (member === undefined && !this.#isComplete) throw discoveryPending()
    return await member?.health.readers()
  }

  /** As configured, or according to the device's last answer; undefined if it has not answered yet. */
  kindOf(name: string): DeviceKind | undefined {
    const member = this.find(name)
    return member && kindOfMember(member)
  }

  /** What the device ignores according to the configuration; undefined: nothing that its kind supports. */
  ignoredBy(name: string): readonly IgnorableParameter[] | undefined {
    return this.find(name)?.device.ignores
  }

  /** How the gateway has the device's streams compressed that it merges. */
  fetchCompressionOf(name: string): FetchCompression | undefined {
    return this.find(name)?.device.fetchCompression
  }

  /** Resolves when each of the devices has been probed once: before that its kind may not be known. */
  async knowKinds(names: readonly string[]): Promise<void> {
    const unknown = names.filter((name) => this.kindOf(name) === undefined)
    await Promise.all(unknown.map((name) => this.find(name)?.health.probedOnce))
  }

  /** Waits until each of the devices whose clock is unknown has been probed once. */
  async knowClocks(names: readonly string[]): Promise<void> {
    const unknown = names.filter((name) => this.clockOf(name) === undefined)
    await Promise.all(unknown.map((name) => this.find(name)?.health.probedOnce))
  }

  /** The offset of the device's clock, as of its last probe. */
  clockOf(name: string): ClockOffset | undefined {
    return this.find(name)?.health.report.clock
  }

  /** Notifies `listener` until the result is disposed. */
  listen(listener: FleetListener): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }

  /** Reports a failure that occurred outside DeviceBreaker.run to the breakers of the devices that `error` names. */
  suspect(error: unknown): void {
    if (!(error instanceof CapfleetError)) return
    const devices = error.details.members?.devices
    if (!Array.isArray(devices)) return
    for (const name of devices) this.find(String(name))?.breaker.suspect(error)
  }

  /**
   * Makes `devices` the fleet; unchanged ones keep their connections and state. Anyone holding a removed member may
   * use it to the end. REQUIRES: names are unique.
   */
  replace(
    devices: readonly Device[],
    { leaving = [], isComplete = true }: FleetReplacement = {},
  ): FleetChange {
    const before = this.#members
    const members = [...devices, ...leaving].map((device) => {
      const member = before.get(device.name)
      if (!member?.device.equals(device)) return this.#open(device)
      takeOverVanishing(member, device)
      return member
    })
    this.#members = new Map(members.map((member) => [member.device.name, member]))
    this.#devices = members.slice(0, devices.length).map((member) => member.device)
    this.#present = new Set(namesOf(this.#devices))
    this.#isComplete = isComplete
    const kept = new Set(members)
    const gone = [...before.values()].filter((member) => !kept.has(member))
    // The client of a removed member may be in use; it closes its idle connections itself.
    for (const { device, health } of gone)
      health
        .close()
        .catch((err) => this.#options.log.error('device.close-failed', { device: device.name, err }))
    for (const listener of this.#listeners) listener.replaced()
    return {
      added: namesOf(this.#devices.filter(({ name }) => !before.has(name))),
      changed: namesOf(gone.map(({ device }) => device).filter(({ name }) => this.#members.has(name))),
      removed: namesOf(gone.map(({ device }) => device).filter(({ name }) => !this.#members.has(name))),
    }
  }

  /** Ends all probes and connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    const members = [...this.#members.values()]
    for (const { client } of members) client.close()
    await Promise.all(members.map(({ health }) => health.close()))
  }

  #open(device: Device): FleetMember {
    const { connectTimeoutMs, idleTimeoutMs, probeTimeoutMs, listTimeoutMs, lists } = this.#options
    const { probeIntervalMs, failuresMax, log } = this.#options
    const onHiddenText = (text: string) => log.info('device.refused', { device: device.name, said: text })
    const client = new DeviceClient(device, { connectTimeoutMs, idleTimeoutMs, onHiddenText })
    const breaker = new DeviceBreaker({
      device,
      failuresMax,
      onOpen: ({ code, message }) => {
        log.warn('device.breaker-open', { device: device.name, code, message })
      },
      onSuspicion: () => health.probeSoon(),
    })
    const health = new DeviceHealth({
      client: new DeviceClient(device, {
        connectTimeoutMs: probeTimeoutMs,
        idleTimeoutMs: probeTimeoutMs,
        // Lets the next probe reuse the connection of this one, which may have cost a TLS handshake.
        restMs: 2 * probeIntervalMs,
      }),
      breaker,
      settings: { intervalMs: probeIntervalMs, timeoutMs: probeTimeoutMs },
      log,
      onChange: (report) => {
        for (const listener of this.#listeners) listener.cameOrWent(device, report)
      },
    })
    return {
      device,
      client,
      health,
      breaker,
      captures: new DeviceCaptures(client, breaker, {
        ...lists,
        timeoutMs: probeTimeoutMs,
        totalMs: listTimeoutMs,
        largeAnswers: this.largeAnswers,
      }),
    }
  }
}

/** Makes the member's health check immediately react to a device that has vanished, or is back. */
function takeOverVanishing(member: FleetMember, { vanishedAt }: Device): void {
  if (member.device.vanishedAt === vanishedAt) return
  member.device.vanishedAt = vanishedAt
  member.health.probeSoon()
}

function namesOf(devices: readonly Device[]): readonly string[] {
  return devices.map((device) => device.name)
}
