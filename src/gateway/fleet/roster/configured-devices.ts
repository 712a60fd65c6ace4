import { type ClientTls, readClientTls } from '../../../shared/base/client-tls.ts'
import { readSecret } from '../../../shared/base/config-file.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import { Device, type DeviceCredentials, type FetchCompression } from '../../device/device.ts'
import type { DeviceKind, IgnorableParameter } from '../../device/device-kind.ts'
import type { AccessSettings, DeviceSettings } from './device-settings.ts'

/** AccessSettings with the contents of the files that they name. */
export interface DeviceAccess extends ClientTls {
  readonly credentials: DeviceCredentials
  readonly site: string | undefined
  readonly fetchCompression: FetchCompression
  readonly kind?: DeviceKind | undefined
  readonly ignores?: readonly IgnorableParameter[] | undefined
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
  const { site, fetchCompression, kind, ignores } = settings
  return {
    credentials: await readCredentials(settings, configPath, setting),
    ...(await readClientTls(settings, configPath, setting)),
    site,
    fetchCompression,
    kind,
    ignores,
  }
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
