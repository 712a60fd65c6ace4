/** Where in the fleet addresses were seen: the answer of a gateway, line by line. */

import type { z } from 'zod'
import { listText } from '../shared/base/list-text.ts'
import type { FLEET_SEEN_LINES } from '../shared/contract/seen-answers.ts'
import type { GatewayClient, QueryPairs } from './gateway-client.ts'
import { type GatewayLine, gatewayLines } from './gateway-lines.ts'

export type SeenAt = z.infer<typeof FLEET_SEEN_LINES.address>
export type SeenFailure = z.infer<typeof FLEET_SEEN_LINES.failure>
export type FleetSeenEnd = z.infer<typeof FLEET_SEEN_LINES.end>
export type SeenLine = SeenAt | SeenFailure | z.infer<typeof FLEET_SEEN_LINES.progress> | FleetSeenEnd

/** As gatewayLines(). */
export function seenLines(
  client: GatewayClient,
  query: QueryPairs,
  signal: AbortSignal,
): AsyncGenerator<GatewayLine<SeenLine>> {
  const brokenOff = 'the answer broke off: addresses may have been seen elsewhere too'
  return gatewayLines<SeenLine>(client, { path: '/v1/seen', query, signal, brokenOff })
}

/** Why the answer is not complete, or undefined if it is. */
export function incompleteText({ complete, unanswered, partial }: FleetSeenEnd): string | undefined {
  if (complete) return undefined
  const reasons = [
    ...(unanswered.length > 0 ? [`not answered by ${listText(unanswered)}`] : []),
    ...(partial.length > 0
      ? [
          `not everything was read on ${listText(partial)}: blocks are damaged, --verify-bytes-max was reached, or a device that cannot search did not prove that it sent everything, or not within an hour`,
        ]
      : []),
  ]
  return `incomplete: ${reasons.join('; ')}`
}
