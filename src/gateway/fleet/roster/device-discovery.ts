import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../../shared/base/log.ts'
import type { Device } from '../../device/device.ts'
import type { DeviceAccess } from './configured-devices.ts'
import type { DiscoverySettings } from './device-settings.ts'
import { admitDevices, type FoundDevice, type RefusedDevice } from './discovered-devices.ts'
import { watchEndpointSlices } from './endpoint-slice-watch.ts'
import { devicesOfSlices } from './endpoint-slices.ts'
import { KeptDevices } from './kept-devices.ts'
import { lookUpSrv } from './srv-discovery.ts'

export interface DiscoveryOptions {
  readonly settings: DiscoverySettings
  readonly access: DeviceAccess
  /** Receives all devices whenever they have been discovered again or one of them is dropped. */
  readonly onDevices: (devices: readonly Device[]) => void
  readonly log: Log
}

/** After a failure the directory is retried soon, then with increasing intervals. */
const RETRY_FIRST_MS = 1_000
const RETRY_MOST_MS = 30_000

/**
 * Keeps asking a directory for devices until it is closed. While that fails the last list stays; a device that is no
 * longer listed is kept for `keepS` as a vanished one.
 */
export class DeviceDiscovery {
  readonly #options: DiscoveryOptions
  readonly #closing = new AbortController()
  readonly #running: Promise<void>
  #refused: ReadonlySet<string> = new Set()
  readonly #kept: KeptDevices
  #forgetting: NodeJS.Timeout | undefined

  constructor(options: DiscoveryOptions) {
    this.#options = options
    this.#kept = new KeptDevices(options.settings.keepS * 1_000)
    this.#running = this.#run()
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the discovery was closed'))
    clearTimeout(this.#forgetting)
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    const { srv, intervalS } = this.#options.settings
    // A watch that ended regularly is restarted; DNS must be polled.
    const restMs = srv === undefined ? RETRY_FIRST_MS : intervalS * 1_000
    let retryMs = RETRY_FIRST_MS
    while (!signal.aborted) {
      const isDone = await this.#ask(signal)
      const pauseMs = isDone ? restMs : retryMs
      retryMs = isDone ? RETRY_FIRST_MS : Math.min(retryMs * 2, RETRY_MOST_MS)
      await delay(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** Asks the directory once; returns whether that succeeded. */
  async #ask(signal: AbortSignal): Promise<boolean> {
    const { srv, dnsServers, endpointSlice } = this.#options.settings
    try {
      if (srv !== undefined) this.#found(await lookUpSrv({ srv, dnsServers }, signal))
      if (endpointSlice !== undefined) {
        await watchEndpointSlices(
          endpointSlice,
          (slices) => this.#found(devicesOfSlices(slices, endpointSlice)),
          signal,
        )
      }
      return true
    } catch (err) {
      if (!signal.aborted) this.#options.log.warn('discovery.failed', { directory: this.#directory, err })
      return false
    }
  }

  #found(found: readonly FoundDevice[]): void {
    if (this.#closing.signal.aborted) return
    const { devices, refused } = admitDevices(found, this.#options)
    this.#logRefused(refused)
    this.#tell(devices)
  }

  #tell(devices: readonly Device[]): void {
    clearTimeout(this.#forgetting)
    const nowMs = performance.now()
    this.#kept.tell(devices, nowMs)
    const { nextMs } = this.#kept
    if (nextMs !== undefined)
      this.#forgetting = setTimeout(() => this.#tell(devices), Math.ceil(nextMs - nowMs)).unref()
    this.#options.onDevices(this.#kept.devices)
  }

  /** Logs each rejected device once, not with every answer of the directory. */
  #logRefused(refused: readonly RefusedDevice[]): void {
    const lines = new Set(refused.map(({ name, reason }) => `${name}: ${reason}`))
    for (const device of lines.difference(this.#refused))
      this.#options.log.warn('discovery.refused', { directory: this.#directory, device })
    this.#refused = lines
  }

  get #directory(): string {
    const { srv, endpointSlice } = this.#options.settings
    return srv ?? `${endpointSlice?.url}/${endpointSlice?.namespace}`
  }
}
