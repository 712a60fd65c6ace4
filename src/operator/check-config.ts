/**
 * `--check`: whether a program would start with this configuration and the files that it names. Contacts nothing and
 * changes nothing. Each check fails with bad-config, whose message names the setting.
 */
import { resolve } from 'node:path'
import { type ApplianceConfig, loadApplianceConfig } from '../../appliance/appliance-config.ts'
import { ProviderKeys } from '../gateway/auth/provider-keys.ts'
import { TokenKeys } from '../gateway/auth/token-keys.ts'
import { openTargets } from '../gateway/export/target/export-targets.ts'
import { type GatewayConfig, loadGatewayConfig } from '../gateway/gateway-config.ts'
import { planRoster } from '../gateway/open-fleet.ts'
import { readRedisTarget } from '../gateway/redis/redis-settings.ts'
import { LoginGate } from '../shared/auth/login-gate.ts'
import { UsersFile } from '../shared/auth/users-file.ts'
import { readClientTls } from '../shared/base/client-tls.ts'
import { CapfleetError } from '../shared/base/error.ts'
import type { Log } from '../shared/base/log.ts'
import { Metrics } from '../shared/base/metrics.ts'
import { readServerCertificate } from '../shared/http/server-certificate.ts'

/** Checks the configuration of gateways and workers, which share it. */
export async function checkGatewayConfig(path: string): Promise<void> {
  const config = await loadGatewayConfig(path)
  const configPath = resolve(path)
  await checkUsers(config.auth, { bounds: true })
  await checkCertificate('listen.tls', config.listen)
  await checkCertificate('exports.worker.listen.tls', config.exports.worker.listen)
  await readRedisTarget(config.redis, configPath)
  await planRoster(config, configPath)
  await openTargets(config.exports.targets, configPath)
  await checkTokenKeys(config)
  await checkProviders(config, configPath)
}

export async function checkApplianceConfig(path: string): Promise<void> {
  const config = await loadApplianceConfig(path)
  await checkUsers(config.auth, { bounds: false })
  await checkCertificate('listen.tls', config.listen)
}

/** The recorder reads no other file. */
export async function checkRecorderConfig(path: string): Promise<void> {
  await loadApplianceConfig(path)
}

type AuthSettings = Pick<ApplianceConfig['auth'], 'users' | 'logins'>

function checkUsers(
  { users, logins }: AuthSettings,
  options: { readonly bounds: boolean },
): Promise<unknown> {
  const gate = new LoginGate(logins, new Metrics())
  return naming('auth.users', () => UsersFile.load(users, gate, options))
}

async function checkCertificate(
  setting: string,
  { tls }: Pick<GatewayConfig['listen'], 'tls'>,
): Promise<void> {
  if (tls !== undefined) await naming(setting, () => readServerCertificate(tls))
}

/** A gateway logs a key that it cannot use and continues without it; here it is an error. */
async function checkTokenKeys({ auth: { tokens } }: GatewayConfig): Promise<void> {
  const { keys: folder } = tokens
  if (folder === undefined) return
  const refused: string[] = []
  const note = (_event: string, { file, message }: Readonly<Record<string, unknown>> = {}) =>
    void refused.push(`${file}: ${message}`)
  await TokenKeys.open({ folder, makesFirst: false, log: { ...SILENT, error: note } })
  if (refused.length > 0) throw new CapfleetError('bad-config', `auth.tokens.keys: ${refused.join('; ')}`)
}

async function checkProviders({ auth: { providers } }: GatewayConfig, configPath: string): Promise<void> {
  for (const [index, settings] of providers.entries()) {
    const { jwks } = settings
    if ('url' in jwks) await readClientTls({ ca: jwks.ca }, configPath, `auth.providers[${index}].jwks`)
    else {
      const keys = await ProviderKeys.open({ settings, log: SILENT, count: () => undefined })
      await keys[Symbol.asyncDispose]()
    }
  }
}

/** Prefixes a failure with the setting that it is about. */
async function naming<Result>(setting: string, check: () => Promise<Result>): Promise<Result> {
  try {
    return await check()
  } catch (cause) {
    if (!(cause instanceof CapfleetError)) throw cause
    throw new CapfleetError(cause.code, `${setting}: ${cause.message}`, { cause })
  }
}

const nothing = () => undefined
const SILENT: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing }
