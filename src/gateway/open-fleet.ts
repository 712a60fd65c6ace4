/** Applies the configuration to the fleet, at the start and after each change of the file. */
import { dirname, resolve } from 'node:path'
import type { Log } from '../shared/base/log.ts'
import type { Metrics } from '../shared/base/metrics.ts'
import { Fleet } from './fleet/fleet.ts'
import { publishFleet } from './fleet/fleet-metrics.ts'
import { readAccess, readDevices } from './fleet/roster/configured-devices.ts'
import type { DiscoverySettings } from './fleet/roster/device-settings.ts'
import type { RosterPlan } from './fleet/roster/fleet-roster.ts'
import type { GatewayConfig } from './gateway-config.ts'

/** The fleet has no devices yet. */
export function openFleet(config: GatewayConfig, metrics: Metrics, log: Log): Fleet {
  const { connectTimeoutMs, timeoutMs, probeTimeoutMs, largeAnswersMax } = config.control
  const { listBytesMax, listEntriesMax } = config.control
  const fleet = new Fleet({
    connectTimeoutMs,
    idleTimeoutMs: config.downloads.idleTimeoutMs,
    probeTimeoutMs,
    listTimeoutMs: timeoutMs,
    probeIntervalMs: config.health.intervalS * 1_000,
    failuresMax: config.health.failuresMax,
    lists: { bytesMax: listBytesMax, entriesMax: listEntriesMax },
    largeAnswersMax,
    log,
  })
  publishFleet(fleet, metrics)
  return fleet
}

/** Reads all secrets. Fails with bad-config without changing anything. */
export async function planRoster(config: GatewayConfig, configPath: string): Promise<RosterPlan> {
  const { devices, deviceDiscovery } = config
  return {
    devices: await readDevices(devices, configPath),
    discoveries: await Promise.all(
      deviceDiscovery.map(async (settings, index) => ({
        settings: withAbsolutePaths(settings, dirname(configPath)),
        access: await readAccess(settings, configPath, `deviceDiscovery[${index}]`),
      })),
    ),
  }
}

function withAbsolutePaths(settings: DiscoverySettings, folder: string): DiscoverySettings {
  const { endpointSlice } = settings
  if (endpointSlice === undefined) return settings
  const tokenFile = resolve(folder, endpointSlice.tokenFile)
  const caFile = resolve(folder, endpointSlice.caFile)
  return { ...settings, endpointSlice: { ...endpointSlice, tokenFile, caFile } }
}
