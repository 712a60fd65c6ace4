import { isIP } from 'node:net'
import { Device } from '../../device/device.ts'
import { AddressRule } from './address-rule.ts'
import type { DeviceAccess } from './configured-devices.ts'
import { DEVICE_NAME } from './device-settings.ts'
import { isPlainHost } from './plain-host.ts'

/** A device as a directory lists it. */
export interface FoundDevice {
  readonly name: string
  /** The host in the device's URL, against which its certificate is checked. */
  readonly host: string
  readonly port: number
  /** All addresses that the host resolves to, at least one. */
  readonly addresses: readonly string[]
}

export interface AdmissionOptions {
  readonly settings: { readonly scheme: 'http' | 'https'; readonly allowCidrs: readonly string[] }
  readonly access: DeviceAccess
}

export interface RefusedDevice {
  readonly name: string
  readonly reason: string
}

export interface Admission {
  readonly devices: readonly Device[]
  readonly refused: readonly RefusedDevice[]
}

/**
 * The acceptable devices among those found. Rejected are invalid and duplicate names, a host that a URL would
 * interpret differently, and a host with any forbidden address. Connections go to the address that was checked,
 * whatever the host resolves to later.
 */
export function admitDevices(found: readonly FoundDevice[], options: AdmissionOptions): Admission {
  const rule = new AddressRule(options.settings.allowCidrs)
  const admitted = new Map<string, Device>()
  const refused: RefusedDevice[] = []
  for (const entry of found) {
    const reason = reasonToRefuse(entry, rule, admitted)
    if (reason === undefined) admitted.set(entry.name, deviceOf(entry, options))
    else refused.push({ name: entry.name, reason })
  }
  return { devices: [...admitted.values()], refused }
}

function reasonToRefuse(
  { name, host, port, addresses }: FoundDevice,
  rule: AddressRule,
  admitted: ReadonlyMap<string, Device>,
): string | undefined {
  if (!DEVICE_NAME.test(name)) return 'the name is not a valid device name'
  if (admitted.has(name)) return 'the name occurs more than once'
  if (port < 1 || port > 65_535) return 'it has no port'
  if (addresses.length === 0) return 'it has no address'
  if (!isPlainHost(host) || !standsFor(host, addresses)) return 'its host is not a plain name or address'
  const forbidden = addresses.find((address) => !rule.allows(address))
  return forbidden === undefined ? undefined : `the address ${forbidden} is forbidden; see allowCidrs`
}

/** An address stands only for itself. */
function standsFor(host: string, addresses: readonly string[]): boolean {
  return isIP(host) === 0 || (addresses.length === 1 && addresses[0] === host)
}

function deviceOf({ name, host, port, addresses }: FoundDevice, options: AdmissionOptions): Device {
  const { credentials, ...access } = options.access
  const urlHost = host.includes(':') ? `[${host}]` : host
  const url = `${options.settings.scheme}://${urlHost}:${port}`
  return new Device({ name, url, ...access, ...credentials, address: addresses[0] })
}
