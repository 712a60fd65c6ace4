import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readSecret } from '../../base/config-file.ts'
import { CapfleetError } from '../../base/error.ts'
import { Device, type DeviceCredentials, type DeviceTls, type FetchCompression } from '../../device/device.ts'
import type { AccessSettings, DeviceSettings } from './device-settings.ts'

/** AccessSettings with the contents of the files that they name. */
export interface DeviceAccess extends DeviceTls {
  readonly credentials: DeviceCredentials
  readonly site: string | undefined
  readonly fetchCompression: FetchCompression
}

/** The configured devices with their secrets. Fails with bad-config. */
export function readDevices(
  devices: readonly DeviceSettings[],
  configPath: string,
): Promise<readonly Device[]> {
  return Promise.all(
    devices.map(async (settings, index) => {
      const { credentials, ...access } = await readAccess(settings, configPath, `devices[${index}]`)
      return new Device({ name: settings.name, url: settings.url, ...access, ...credentials })
    }),
  )
}

/** `setting` is the path of the settings in the configuration. Fails with bad-config. */
export async function readAccess(
  settings: AccessSettings,
  configPath: string,
  setting: string,
): Promise<DeviceAccess> {
  const { site, fetchCompression } = settings
  return {
    credentials: await readCredentials(settings, configPath, setting),
    ...(await readTls(settings, configPath, setting)),
    site,
    fetchCompression,
  }
}

async function readTls(settings: AccessSettings, configPath: string, setting: string): Promise<DeviceTls> {
  const read = async (name: 'ca' | 'cert' | 'key') => {
    const file = settings[name]
    return file === undefined ? undefined : await readSecret({ file }, configPath, `${setting}.${name}`)
  }
  const tls = {
    ca: (await read('ca'))?.reveal(),
    cert: (await read('cert'))?.reveal(),
    key: await read('key'),
  }
  try {
    refuseUnusable(tls)
  } catch (cause) {
    throw new CapfleetError('bad-config', `${setting}: cannot use ca, cert and key (${String(cause)})`, {
      cause,
    })
  }
  return tls
}

/** Node would take a text without any certificate silently: as ca it has all those trusted that Node knows. */
function refuseUnusable({ ca, cert, key }: DeviceTls): void {
  if (ca !== undefined) new X509Certificate(ca)
  if (cert === undefined || key === undefined) return
  if (new X509Certificate(cert).checkPrivateKey(createPrivateKey(key.reveal()))) return
  throw new Error('the key is not that of the certificate')
}

/** A text that a header value can carry. */
const TOKEN = /^[\x21-\x7e]+$/

async function readCredentials(
  { user, password, token }: AccessSettings,
  configPath: string,
  setting: string,
): Promise<DeviceCredentials> {
  if (user !== undefined && password !== undefined)
    return { user, password: await readSecret(password, configPath, `${setting}.password`) }
  if (token === undefined) throw new Error('the schema lets no settings without credentials through')
  const secret = await readSecret(token, configPath, `${setting}.token`)
  if (TOKEN.test(secret.reveal())) return { token: secret }
  throw new CapfleetError('bad-config', `${setting}.token: must be one line of printable characters`)
}
