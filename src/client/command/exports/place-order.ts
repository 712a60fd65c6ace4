import { randomUUID } from 'node:crypto'
import { ClientFailure } from '../../client-failure.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { Retries } from '../common/retries.ts'

const RETRIES_MAX = 3

interface Order {
  readonly query: QueryPairs
  /** Orders with the same key are one order. Default: this is another one. */
  readonly key?: string
  readonly signal: AbortSignal
}

/** Orders exactly once, even over broken connections: the gateway recognizes a retry by its key. */
export async function placeOrder<Answer>(
  client: GatewayClient,
  path: string,
  { query, key = randomUUID(), signal }: Order,
): Promise<Answer> {
  const headers = { 'idempotency-key': key }
  const say = (text: string) => void process.stderr.write(`capfleet: ${text}\n`)
  const retries = new Retries({ max: RETRIES_MAX, signal, say })
  for (;;) {
    try {
      return (await client.json<Answer>(path, { method: 'POST', query, headers, signal })).value
    } catch (error) {
      // A user with too many exports must decide what to do.
      if (!(error instanceof ClientFailure) || error.kind === 'busy') throw error
      await retries.pause(error)
    }
  }
}
