/** What Redis must allow the gateway's user, if it has users (ACL). */
import type { Redis } from 'ioredis'
import { CapfleetError } from '../../shared/base/error.ts'

/** All keys of gateways and workers begin with one of these. */
const keyGroups = (keyPrefix: string) => [`{${keyPrefix}}:`, `{${keyPrefix}:jobs}:`, `{${keyPrefix}:quota}:`]
/** The beginning of all channels. */
const channels = (keyPrefix: string) => `{${keyPrefix}}:`

/** Rules for ACL SETUSER; INFO is one of the dangerous commands. */
export function neededRights(keyPrefix: string): readonly string[] {
  const keys = keyGroups(keyPrefix).map((group) => `~${group}*`)
  return [...keys, `&${channels(keyPrefix)}*`, '+@all', '-@dangerous', '+info']
}

/** Whether Redis rejected a command because the user may not run it, or not with these keys or channels. */
export function isNotPermitted(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOPERM')
}

/**
 * Fails with bad-config if the user may not write all keys, publish or run scripts: without one of these, the gateway
 * would start, but exports, for instance, would never end.
 */
export async function checkRights(redis: Redis, keyPrefix: string): Promise<void> {
  try {
    for (const group of keyGroups(keyPrefix)) await redis.eval('return 1', 1, `${group}rights`)
    for (const group of keyGroups(keyPrefix)) await redis.del(`${group}rights`)
    await redis.publish(`${channels(keyPrefix)}rights`, '')
  } catch (cause) {
    throw isNotPermitted(cause) ? lacksRights(redis, keyPrefix, cause) : cause
  }
}

export function lacksRights(redis: Redis, keyPrefix: string, cause: unknown): CapfleetError {
  const { username = 'default' } = redis.options
  const needed = neededRights(keyPrefix).join(' ')
  const why = (cause as Error).message
  return new CapfleetError(
    'bad-config',
    `redis.user: user ${username} lacks rights in Redis that the gateway needs (${why}); grant ${needed}`,
    { cause, param: 'redis.user' },
  )
}
