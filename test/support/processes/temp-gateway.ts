import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { putUser } from '../../../src/auth/users-file.ts'
import type { Log } from '../../../src/base/log.ts'
import { startGateway } from '../../../src/gateway.ts'
import { type GatewayConfig, gatewayConfigSchema } from '../../../src/gateway-config.ts'
import { settleFresh } from './temp-redis.ts'

export interface TempGateway extends AsyncDisposable {
  readonly url: string
  readonly config: GatewayConfig
  /** Where its configuration would be: paths are relative to its folder. */
  readonly configPath: string
  /** HTTP Basic headers of the users "viewer", "user" and "full". */
  readonly as: Readonly<Record<'viewer' | 'user' | 'full', { readonly authorization: string }>>
  readonly logged: readonly { readonly event: string; readonly fields: Readonly<Record<string, unknown>> }[]
  close(drainMs: number): Promise<void>
}

const PASSWORD = 'open sesame'

/** A real gateway on a free port over the given devices; `settings` replaces parts of its configuration. */
export async function startTempGateway(
  devices: readonly { readonly config: object; readonly password: string }[],
  redisUrl: string | undefined,
  settings: Partial<Record<keyof GatewayConfig, unknown>> = {},
): Promise<TempGateway> {
  process.env.FAKE_DEVICE_PASSWORD = devices[0]?.password ?? ''
  const folder = await mkdtemp(join(tmpdir(), 'capfleet-gateway-'))
  const users = join(folder, 'users.yaml')
  for (const role of ['viewer', 'user', 'full'] as const) await putUser(users, { name: role, role }, PASSWORD)
  const config = gatewayConfigSchema.parse({
    listen: { port: 0 },
    home: join(folder, 'home'),
    redis: redisUrl === undefined ? {} : { url: redisUrl },
    devices: devices.map((device) => device.config),
    // Tests make devices fail often; those of the breaker set a limit.
    health: { failuresMax: 1_000_000 },
    timeZone: 'UTC',
    ...settings,
    auth: { users, ...(settings.auth as object | undefined) },
  })
  if (redisUrl !== undefined) await settleFresh(redisUrl, config.redis.keyPrefix)
  const logged: { event: string; fields: Readonly<Record<string, unknown>> }[] = []
  const record = (event: string, fields: Readonly<Record<string, unknown>> = {}) => {
    logged.push({ event, fields })
  }
  const log: Log = { debug: record, info: record, warn: record, error: record }
  const configPath = join(folder, 'gateway.yaml')
  const gateway = await startGateway(config, { configPath, log })
  const basic = (user: string) => ({ authorization: `Basic ${btoa(`${user}:${PASSWORD}`)}` })
  return {
    url: gateway.url,
    config,
    configPath,
    as: { viewer: basic('viewer'), user: basic('user'), full: basic('full') },
    logged,
    close: gateway.close,
    [Symbol.asyncDispose]: async () => {
      await gateway.close(0)
      await rm(folder, { recursive: true, force: true })
    },
  }
}
