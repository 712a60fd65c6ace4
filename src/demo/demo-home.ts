/** The files of the demo fleet: credentials, users, configurations, stores. */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { putUser } from '../shared/auth/edit-users-file.ts'

export const DEMO_USER = 'demo'
/** The user name with which the gateway logs in to the devices. */
const DEVICE_USER = 'gateway'
export const DEMO_SITES = [
  { name: 'nyc1', site: 'us' },
  { name: 'lon1', site: 'eu' },
  { name: 'sgp1', site: 'asia' },
] as const

export interface DemoDevice {
  readonly name: string
  readonly site: string
  readonly user: string
  readonly password: string
  readonly store: string
  readonly configPath: string
}

/** The part of an appliance's setting `capture.ports` that differs from the default. */
export type PortSetting = Readonly<Record<string, unknown>>

export interface DemoHome {
  readonly folder: string
  readonly password: string
  readonly devices: readonly DemoDevice[]
  readonly gatewayUsersPath: string
}

/**
 * Creates what is missing below `home` and keeps what exists, so that a second start is quick and passwords stay.
 * `fleet` names the set of stores: the generated traffic and the user's own files are kept side by side. The first
 * device captures on these ports.
 */
export async function prepareDemoHome(
  home: string,
  fleet: 'generated' | 'imported',
  ports: readonly PortSetting[] = [],
): Promise<DemoHome> {
  const folder = join(home, fleet)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const password = await storedPassword(join(home, 'demo-password'))
  const gatewayUsersPath = join(home, 'gateway-users.yaml')
  await ensureUser(gatewayUsersPath, DEMO_USER, password)
  const devices: DemoDevice[] = []
  for (const [index, site] of DEMO_SITES.entries())
    devices.push(await prepareDevice(folder, site, index === 0 ? ports : []))
  return { folder, password, devices, gatewayUsersPath }
}

/** Removes the captures of an earlier run with other files. */
export async function clearStores(home: DemoHome): Promise<void> {
  for (const device of home.devices) await rm(device.store, { recursive: true, force: true })
}

async function prepareDevice(
  folder: string,
  { name, site }: (typeof DEMO_SITES)[number],
  ports: readonly PortSetting[],
): Promise<DemoDevice> {
  const base = join(folder, name)
  await mkdir(base, { recursive: true })
  const password = await storedPassword(join(base, 'password'))
  const usersPath = join(base, 'users.yaml')
  await ensureUser(usersPath, DEVICE_USER, password)
  const device = { name, site, user: DEVICE_USER, password, store: join(base, 'store') }
  const configPath = join(base, 'appliance.yaml')
  const config = {
    deviceName: name,
    listen: { host: '127.0.0.1', port: 0 },
    store: device.store,
    timeZone: 'UTC',
    auth: { users: usersPath },
    capture: { ports },
    // A nearly full disk is no reason to remove the demo's captures.
    retention: { minFreeBytes: 0 },
  }
  await writeFile(configPath, stringify(config))
  return { ...device, configPath }
}

async function storedPassword(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch {
    const password = randomBytes(12).toString('base64url')
    await writeFile(path, `${password}\n`, { mode: 0o600 })
    return password
  }
}

async function ensureUser(path: string, name: string, password: string): Promise<void> {
  const known = await readFile(path, 'utf8').catch(() => '')
  if (!known.includes(`name: ${name}`)) await putUser(path, { name, role: 'full' }, password)
}
