/** Creates the parts with which the gateway issues and verifies tokens. */
import { join } from 'node:path'
import type { UsersFile } from '../shared/auth/users-file.ts'
import type { Log } from '../shared/base/log.ts'
import type { Metrics } from '../shared/base/metrics.ts'
import type { SharedTime } from '../shared/base/shared-time.ts'
import { Grants } from './auth/grants.ts'
import { IdentityProvider } from './auth/identity-provider.ts'
import { OwnTokens } from './auth/own-tokens.ts'
import { ProviderKeys } from './auth/provider-keys.ts'
import type { ProviderSettings } from './auth/provider-settings.ts'
import { Revocations } from './auth/revocations.ts'
import { Sessions } from './auth/sessions.ts'
import { Tickets } from './auth/tickets.ts'
import { TokenKeys } from './auth/token-keys.ts'
import { TokenStore } from './auth/token-store.ts'
import { TokenVerifier } from './auth/token-verifier.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { RedisTarget } from './redis/redis-connection.ts'
import type { TokenHandling } from './routes/access/access-parts.ts'

export interface OpenTokensParts {
  readonly users: UsersFile
  readonly redis: RedisTarget
  readonly clock: SharedTime
  readonly metrics: Metrics
  readonly log: Log
}

export interface OpenedTokens {
  readonly handling: TokenHandling
  readonly verifier: TokenVerifier
  readonly keys: TokenKeys
  readonly tickets: Tickets
}

/** The folder of capfleet's own keys. */
export function tokenKeysFolder({ home, auth: { tokens } }: GatewayConfig): string {
  return tokens.keys ?? join(home, 'token-keys')
}

/** What is opened ends when `owner` is disposed. Fails with bad-config or scheduler-unavailable. */
export async function openTokens(
  config: GatewayConfig,
  { users, redis, clock, metrics, log }: OpenTokensParts,
  owner: AsyncDisposableStack,
): Promise<OpenedTokens> {
  const { tokens, sessions: lasting, providers } = config.auth
  const makesFirst = tokens.keys === undefined
  const keys = await TokenKeys.open({ folder: tokenKeysFolder(config), makesFirst, log })
  const kept = { redis, keyPrefix: config.redis.keyPrefix, log }
  const store = owner.use(new TokenStore(kept))
  const revocations = owner.use(await Revocations.start({ store, clock, metrics, log }))
  const grants = new Grants(users, revocations, new Set(providers.map(({ name }) => name)))
  const own = new OwnTokens({ keys, store, clock }, tokens)
  const others = await openProviders(providers, { metrics, log }, owner)
  const verifier = new TokenVerifier({ issuers: [own, ...others], grants, clock, metrics })
  const sessions = new Sessions({ keys, store, revocations, clock }, { ...tokens, ...lasting })
  const tickets = owner.use(new Tickets({ ...kept, clock }, grants))
  return { handling: { own, store, revocations, sessions }, verifier, keys, tickets }
}

async function openProviders(
  providers: readonly ProviderSettings[],
  { metrics, log }: Pick<OpenTokensParts, 'metrics' | 'log'>,
  owner: AsyncDisposableStack,
): Promise<readonly IdentityProvider[]> {
  const reads = metrics.counter(
    'provider_keys_reads_total',
    'How often the keys of an identity provider were read, by provider and result',
    ['provider', 'result'],
  )
  return Promise.all(
    providers.map(async (settings) => {
      const count = (result: string) => reads.inc({ provider: settings.name, result })
      return new IdentityProvider(settings, owner.use(await ProviderKeys.open({ settings, log, count })))
    }),
  )
}
