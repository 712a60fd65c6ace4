import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../../../shared/base/log.ts'
import { Device } from '../../device/device.ts'
import type { Fleet } from '../fleet.ts'
import type { DeviceAccess } from './configured-devices.ts'
import { DeviceDiscovery } from './device-discovery.ts'
import type { DiscoverySettings } from './device-settings.ts'

/** A discovery with the secrets that its settings name. */
export interface DiscoveryPlan {
  readonly settings: DiscoverySettings
  readonly access: DeviceAccess
}

/** The devices that the configuration asks for. */
export interface RosterPlan {
  readonly devices: readonly Device[]
  readonly discoveries: readonly DiscoveryPlan[]
}

export interface RosterOptions {
  readonly fleet: Fleet
  /** Returns those devices that have running or waiting downloads. */
  readonly busyOf: (names: readonly string[]) => Promise<ReadonlySet<string>>
  readonly log: Log
}

interface Source {
  readonly plan: DiscoveryPlan
  readonly discovery: DeviceDiscovery
  /** undefined: it has not answered yet. */
  devices: readonly Device[] | undefined
}

interface Leaver {
  readonly device: Device
  /** When its grace period ends (performance.now()). */
  readonly untilMs: number
}

/** How long running downloads can still ask a configured device after it left. */
const GRACE_MS = 300_000
const LOOK_MS = 1_000

/**
 * Decides which devices make up the fleet: those of the configuration, then those of each discovery, each name once. A
 * device that leaves accepts no new downloads, but is kept for those still running on it.
 */
export class FleetRoster implements AsyncDisposable {
  readonly #options: RosterOptions
  readonly #closing = new AbortController()
  #configured: readonly Device[] = []
  #sources: readonly Source[] = []
  /** Duplicate names that have been logged. */
  #duplicates: ReadonlySet<string> = new Set()
  readonly #leavers = new Map<string, Leaver>()
  #seeingOff: Promise<void> | undefined

  constructor(options: RosterOptions) {
    this.#options = options
  }

  /** Applies a configuration, the first or a changed one; unchanged parts continue undisturbed. */
  async configure({ devices, discoveries }: RosterPlan): Promise<void> {
    const before = this.#sources
    const kept = discoveries.map((plan) => before.find((source) => isSamePlan(source.plan, plan)))
    const ended = before.filter((source) => !kept.includes(source))
    this.#configured = devices
    this.#sources = discoveries.map((plan, index) => kept[index] ?? this.#begin(plan))
    this.#apply()
    await Promise.all(ended.map(({ discovery }) => discovery.close()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#sources.map(({ discovery }) => discovery.close()))
    await this.#seeingOff
  }

  #begin(plan: DiscoveryPlan): Source {
    const source: Source = {
      plan,
      devices: undefined,
      discovery: new DeviceDiscovery({
        ...plan,
        log: this.#options.log,
        onDevices: (devices) => {
          source.devices = devices
          if (this.#sources.includes(source)) this.#apply()
        },
      }),
    }
    return source
  }

  #apply(): void {
    const { fleet, log } = this.#options
    const present = this.#present()
    const names = new Set(present.map(({ name }) => name))
    for (const device of fleet.devices)
      if (!names.has(device.name))
        this.#leavers.set(device.name, { device: leaverOf(device), untilMs: performance.now() + GRACE_MS })
    for (const name of names) this.#leavers.delete(name)
    const leaving = [...this.#leavers.values()].map(({ device }) => device)
    const isComplete = this.#sources.every(({ devices }) => devices !== undefined)
    const change = fleet.replace(present, { leaving, isComplete })
    const isChange = change.added.length + change.changed.length + change.removed.length > 0
    if (isChange) log.info('fleet.changed', { ...change, devices: present.length })
    if (leaving.length > 0) this.#seeingOff ??= this.#seeOff()
  }

  #present(): readonly Device[] {
    const present = new Map<string, Device>()
    const duplicates = new Set<string>()
    const known = [...this.#configured, ...this.#sources.flatMap(({ devices }) => devices ?? [])]
    const told = new Set(known.filter(({ vanishedAt }) => vanishedAt === undefined).map(({ name }) => name))
    for (const device of known) {
      // Another directory lists it, or the configuration names it.
      if (device.vanishedAt !== undefined && told.has(device.name)) continue
      if (present.has(device.name)) duplicates.add(`${device.name} ${device.url.href}`)
      else present.set(device.name, device)
    }
    for (const duplicate of duplicates.difference(this.#duplicates))
      this.#options.log.warn('fleet.duplicate-device', { device: duplicate })
    this.#duplicates = duplicates
    return [...present.values()]
  }

  /** Removes leaving devices that have no downloads any more, or whose grace period is over. */
  async #seeOff(): Promise<void> {
    while (this.#leavers.size > 0 && !this.#closing.signal.aborted) {
      const names = [...this.#leavers.keys()]
      // While the scheduler is unavailable, all count as busy; the grace period ends anyway.
      const busy = await this.#options.busyOf(names).catch(() => new Set(names))
      const nowMs = performance.now()
      const done = [...this.#leavers].filter(([name, { untilMs }]) => !busy.has(name) || nowMs > untilMs)
      for (const [name] of done) this.#leavers.delete(name)
      if (done.length > 0) this.#apply()
      await delay(LOOK_MS, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined)
    }
    this.#seeingOff = undefined
  }
}

/** A discovered device that leaves counts as missing from its directory, even if that is no longer asked. */
function leaverOf(device: Device): Device {
  const hasVanishedNow = device.isDiscovered && device.vanishedAt === undefined
  return hasVanishedNow ? device.vanished(new Date()) : device
}

/** Credentials are compared too, through the devices that they would produce. */
function isSamePlan(a: DiscoveryPlan, b: DiscoveryPlan): boolean {
  return isDeepStrictEqual(a.settings, b.settings) && sampleOf(a).equals(sampleOf(b))
}

function sampleOf({ access: { credentials, ...access } }: DiscoveryPlan): Device {
  return new Device({ name: 'sample', url: 'https://sample', ...access, ...credentials })
}
