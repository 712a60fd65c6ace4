/** Streams and waiting requests, across all gateways. */
import { answered, gateway, type Schemas } from './ask-gateway.ts'
import { type Asked, useAsked } from './asked.ts'

export type QueuePlace = Schemas['Queue']['requests'][number]

const EVERY_MS = 2_000

export function useQueue(): Asked<readonly QueuePlace[]> {
  return useAsked(async (signal) => (await answered(gateway.GET('/v1/queue', { signal }))).requests, {
    key: 'queue',
    everyMs: EVERY_MS,
  })
}
