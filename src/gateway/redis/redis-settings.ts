/** Settings of Redis: its location and our credentials; part of src/gateway/gateway-config.ts. */
import { z } from 'zod'
import { readClientTls } from '../../shared/base/client-tls.ts'
import { readSecret, secretSchema } from '../../shared/base/config-file.ts'
import type { RedisTarget } from './redis-connection.ts'

const SENTINEL_PORT = 26_379

const sentinelSchema = z.strictObject({
  host: z.string().min(1).max(253),
  port: z.int().min(1).max(65_535).default(SENTINEL_PORT),
})

export const redisSchema = z
  .strictObject({
    url: z
      .string()
      .refine(
        isRedisUrl,
        'must be redis://, rediss:// or the absolute path of a Unix socket, without user (redis.user) and password (redis.password)',
      )
      .optional(),
    sentinels: z.array(sentinelSchema).max(32).default([]),
    sentinelName: z.string().min(1).max(253).default('mymaster'),
    sentinelPassword: secretSchema.optional(),
    user: z.string().min(1).max(253).optional(),
    password: secretSchema.optional(),
    ca: z.string().min(1).optional(),
    cert: z.string().min(1).optional(),
    key: z.string().min(1).optional(),
    keyPrefix: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,32}$/, 'must be 1 to 32 letters, digits, _ and -')
      .default('capfleet'),
  })
  .superRefine(refuseContradictions)
  .prefault({})

export type RedisSettings = z.infer<typeof redisSchema>

/** Whether the gateway runs its own Redis. */
export function isPrivate({ url, sentinels }: RedisSettings): boolean {
  return url === undefined && sentinels.length === 0
}

/** The configured Redis with its secrets, or undefined if there is none. Fails with bad-config. */
export async function readRedisTarget(
  settings: RedisSettings,
  configPath: string,
): Promise<RedisTarget | undefined> {
  if (isPrivate(settings)) return undefined
  const { url, sentinels, sentinelName, user, password, sentinelPassword } = settings
  const secretOf = (source: typeof password, setting: string) =>
    source && readSecret(source, configPath, `redis.${setting}`)
  return {
    url,
    user,
    password: await secretOf(password, 'password'),
    sentinels:
      sentinels.length === 0
        ? undefined
        : {
            addresses: sentinels,
            name: sentinelName,
            password: await secretOf(sentinelPassword, 'sentinelPassword'),
          },
    tls: await readClientTls(settings, configPath, 'redis'),
  }
}

interface Contradictable {
  readonly url?: string | undefined
  readonly sentinels: readonly unknown[]
  readonly sentinelPassword?: unknown
  readonly user?: string | undefined
  readonly password?: unknown
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

function refuseContradictions(settings: Contradictable, context: z.RefinementCtx): void {
  const { url, sentinels, sentinelPassword, user, password, ca, cert, key } = settings
  const refuse = (name: string, message: string) =>
    context.addIssue({ code: 'custom', path: [name], message })
  const hasSentinels = sentinels.length > 0
  if (hasSentinels && url !== undefined)
    refuse('sentinels', 'must not be set beside redis.url: they give the address of Redis')
  if (!hasSentinels && sentinelPassword !== undefined)
    refuse('sentinelPassword', 'needs redis.sentinels; the password of Redis is redis.password')
  if (user !== undefined && password === undefined) refuse('password', 'must be set beside redis.user')
  if ((cert === undefined) !== (key === undefined))
    refuse(cert === undefined ? 'cert' : 'key', 'must be set too: cert and key belong together')
  if (ca === undefined && cert === undefined) return
  if (hasSentinels ? ca === undefined : url?.startsWith('rediss://') !== true)
    refuse(
      ca === undefined ? 'cert' : 'ca',
      'needs a redis.url of rediss://, or redis.sentinels with redis.ca',
    )
}

function isRedisUrl(text: string): boolean {
  if (text.startsWith('/')) return true
  const url = URL.parse(text)
  return (
    url !== null && ['redis:', 'rediss:'].includes(url.protocol) && url.username === '' && url.password === ''
  )
}
