import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGateway } from '../../../src/gateway/gateway.ts'
import { type GatewayConfig, gatewayConfigSchema } from '../../../src/gateway/gateway-config.ts'
import type { WrittenBounds } from '../../../src/shared/auth/bounds.ts'
import { ROLES, type Role } from '../../../src/shared/base/scopes.ts'
import {
  type LoggedLine,
  refuseSecretsBelow,
  refuseSecretsInMetrics,
  searchedLog,
  USER_PASSWORD,
} from '../suite-secrets.ts'
import { writeUsers } from '../suite-users.ts'
import { onceRedisAnswers } from './once-redis-answers.ts'
import { settleFresh } from './temp-redis.ts'

export interface TempGateway extends AsyncDisposable {
  readonly url: string
  readonly config: GatewayConfig
  /** Path of its configuration, if it had a file: paths are relative to its folder. */
  readonly configPath: string
  /** The HTTP Basic header of any user. */
  basic(name: string): { readonly authorization: string }
  /** HTTP Basic headers of the users "viewer", "user", "full" and "admin". */
  readonly as: Readonly<Record<Role, { readonly authorization: string }>>
  readonly logged: readonly LoggedLine[]
  /** Call this after a change of its users file, config.auth.users. */
  reloadUsers(): Promise<void>
  /** As after a change of the configuration file. */
  reload(changed: GatewayConfig): Promise<void>
  close(drainMs: number): Promise<void>
}

/** A user with bounds, in addition to those named like roles. */
export interface BoundedUser extends WrittenBounds {
  readonly name: string
  readonly role: Role
}

/**
 * A device that is slow because the machine is busy has not failed, and a client that does not read keeps its streams:
 * tests of failures and of parking set other limits.
 */
const PATIENT = {
  downloads: { startTimeoutMs: 120_000, idleTimeoutMs: 120_000, parkAfterMs: 3_600_000 },
  control: { timeoutMs: 120_000, probeTimeoutMs: 20_000, connectTimeoutMs: 20_000 },
}

/** A real gateway on a free port over the given devices; `settings` replaces parts of its configuration. */
export async function startTempGateway(
  devices: readonly { readonly config: object; readonly password: string }[],
  redisUrl: string | undefined,
  settings: Partial<Record<keyof GatewayConfig, unknown>> = {},
  bounded: readonly BoundedUser[] = [],
): Promise<TempGateway> {
  process.env.FAKE_DEVICE_PASSWORD = devices[0]?.password ?? ''
  const folder = await mkdtemp(join(tmpdir(), 'capfleet-gateway-'))
  const users = join(folder, 'users.yaml')
  await writeUsers(users, [...ROLES.map((role) => ({ name: role, role })), ...bounded], USER_PASSWORD)
  const config = gatewayConfigSchema.parse({
    listen: { port: 0 },
    home: join(folder, 'home'),
    redis: redisUrl === undefined ? {} : { url: redisUrl },
    devices: devices.map((device) => device.config),
    // Tests make devices fail often; tests of the breaker set a limit.
    health: { failuresMax: 1_000_000 },
    timeZone: 'UTC',
    ...settings,
    downloads: { ...PATIENT.downloads, ...(settings.downloads as object | undefined) },
    control: { ...PATIENT.control, ...(settings.control as object | undefined) },
    auth: { users, anonymousMetrics: true, ...(settings.auth as object | undefined) },
  })
  if (redisUrl !== undefined) await settleFresh(redisUrl, config.redis.keyPrefix)
  const log = searchedLog()
  const configPath = join(folder, 'gateway.yaml')
  const gateway = await onceRedisAnswers(() => startGateway(config, { configPath, log }))
  const basic = (user: string) => ({ authorization: `Basic ${btoa(`${user}:${USER_PASSWORD}`)}` })
  return {
    url: gateway.url,
    config,
    configPath,
    basic,
    as: { viewer: basic('viewer'), user: basic('user'), full: basic('full'), admin: basic('admin') },
    logged: log.lines,
    reloadUsers: gateway.reloadUsers,
    reload: gateway.reload,
    close: gateway.close,
    [Symbol.asyncDispose]: async () => {
      await refuseSecretsInMetrics(gateway.url)
      await gateway.close(0)
      log.refuseSecrets()
      await refuseSecretsBelow(folder)
      await rm(folder, { recursive: true, force: true })
    },
  }
}
