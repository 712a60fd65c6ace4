/** `capfleet device check`: which device is meant, and its findings as text. */
import { resolve } from 'node:path'
import { z } from 'zod'
import { readPassword } from '../client/command/common/password-prompt.ts'
import { createProgressBar } from '../client/command/common/progress-bar.ts'
import { Device } from '../gateway/device/device.ts'
import { deviceSchema } from '../gateway/fleet/roster/device-settings.ts'
import { loadGatewayConfig } from '../gateway/gateway-config.ts'
import { planRoster } from '../gateway/open-fleet.ts'
import { readClientTls } from '../shared/base/client-tls.ts'
import { CapfleetError } from '../shared/base/error.ts'
import { Secret } from '../shared/base/secret.ts'
import { formatFindings } from './appliance-doctor.ts'
import { checkDevice } from './device-check.ts'

/** Either the name of a configured device, or the address of one that is not configured. */
export interface CheckedDevice {
  readonly name?: string | undefined
  readonly config?: string | undefined
  readonly url?: string | undefined
  readonly user?: string | undefined
  readonly ca?: string | undefined
}

/**
 * Prints its findings, as a table or as JSON. Returns whether there is no problem. Fails with bad-config or
 * bad-parameter.
 */
export async function runDeviceCheck(
  asked: CheckedDevice,
  { json, signal }: { readonly json: boolean; readonly signal: AbortSignal },
): Promise<boolean> {
  const device = await askedDevice(asked)
  const bar = createProgressBar('device check')
  const findings = await checkDevice(device, signal, bar.tell).finally(bar.clear)
  const text = json ? JSON.stringify({ findings }, undefined, 2) : formatFindings(findings)
  process.stdout.write(`${text}\n`)
  return findings.every(({ level }) => level !== 'problem')
}

/** As in the configuration. */
const ADDRESS = z.object({ url: deviceSchema.shape.url, user: deviceSchema.shape.user })

async function askedDevice({ name, config, url, user = 'gateway', ca }: CheckedDevice): Promise<Device> {
  if (url !== undefined) {
    if (name !== undefined)
      throw new CapfleetError('bad-parameter', `give a device by its name (${name}) or by --url, not both`)
    const { error } = ADDRESS.safeParse({ url, user })
    const [mistake] = error?.issues ?? []
    if (mistake !== undefined)
      throw new CapfleetError('bad-parameter', `--${mistake.path.join()} ${mistake.message}`)
    const password = new Secret(await readPassword(user))
    if (password.reveal() === '') throw new CapfleetError('bad-parameter', 'the password is empty')
    const tls = await readClientTls({ ca }, resolve('command line'), '--url').catch((error: unknown) => {
      if (!(error instanceof CapfleetError)) throw error
      const message = `--ca ${ca} is not a file of PEM certificates (${error.message})`
      throw new CapfleetError('bad-parameter', message, { cause: error })
    })
    return new Device({ name: new URL(url).host, url, user, password, ...tls })
  }
  if (name === undefined || config === undefined)
    throw new CapfleetError(
      'bad-parameter',
      'name a device of the configuration (--config), or give its --url',
    )
  const { devices } = await planRoster(await loadGatewayConfig(config), resolve(config))
  const found = devices.find((device) => device.name === name)
  if (found !== undefined) return found
  const names = devices.map((device) => device.name).join(', ')
  throw new CapfleetError(
    'unknown-device',
    `${config} has no device ${JSON.stringify(name)}; it has: ${names}`,
  )
}
