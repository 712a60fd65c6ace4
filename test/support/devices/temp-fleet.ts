import { Device } from '../../../src/gateway/device/device.ts'
import { Fleet, type FleetOptions } from '../../../src/gateway/fleet/fleet.ts'
import { Secret } from '../../../src/shared/base/secret.ts'
import { DEVICE_PASSWORD } from '../suite-secrets.ts'

const ignore = () => undefined

/** A fleet of these devices that, after the first probes, sends only what the test requests, with long time limits. */
export function tempFleet(
  devices: readonly { readonly name: string; readonly url: string }[],
  options: Partial<FleetOptions> = {},
): Fleet {
  const fleet = new Fleet({
    connectTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    probeTimeoutMs: 60_000,
    listTimeoutMs: 60_000,
    probeIntervalMs: 3_600_000,
    failuresMax: 1_000_000,
    lists: { bytesMax: 100_000_000, entriesMax: 200_000 },
    largeAnswersMax: 4,
    log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    ...options,
  })
  fleet.replace(
    devices.map(
      ({ name, url }) => new Device({ name, url, user: 'gateway', password: new Secret(DEVICE_PASSWORD) }),
    ),
  )
  return fleet
}
