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

/** The three keys and four values that describe an order to the scripts. `prefix` depends on the kind of order. */
export function knownOrder(prefix: string, user: string, idempotency: Idempotency | undefined) {
  const keys =
    idempotency === undefined
      ? ['', '', '']
      : [`${prefix}:key:${user}:${sha256(idempotency.key)}`, `${prefix}:keys-of:${user}`, `${prefix}:keys`]
  return { keys, values: [sha256(idempotency?.asked ?? ''), KEPT_MS, PER_USER_MAX, OF_ALL_MAX] }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
