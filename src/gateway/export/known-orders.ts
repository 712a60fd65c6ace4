/** Idempotency keys: an order that a client sends again has the same key, and so is executed once. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Identifies repeated orders. */
export interface Idempotency {
  readonly key: string
  /** The request as text, because times may be relative and make each order different. */
  readonly asked: string
}

/** How long an idempotency key is remembered. */
const KEPT_MS = 86_400_000
/** Only the newest keys are kept. Clients retry within minutes, and a user's script orders fewer in that time. */
const PER_USER_MAX = 1_000
/** About 10 MB of Redis. */
const OF_ALL_MAX = 20_000

/** Common beginning of the scripts that store orders. */
export const KNOWN_ORDERS = readFileSync(new URL('known-orders.lua', import.meta.url), 'utf8')

/**
 * The three keys and the four values of an order that they take. `prefix` is of the kind of order. An order without a key
 * has names for all three, too: an empty name lies in another slot of a Redis Cluster than the rest.
 */
export function knownOrder(prefix: string, user: string, idempotency: Idempotency | undefined) {
  const { key, asked } = idempotency ?? {}
  const own = `${prefix}:key:${user}:${key === undefined ? '' : sha256(key)}`
  const keys = [own, `${prefix}:keys-of:${user}`, `${prefix}:keys`]
  const askedHash = asked === undefined ? '' : sha256(asked)
  return { keys, values: [askedHash, KEPT_MS, PER_USER_MAX, OF_ALL_MAX] }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
