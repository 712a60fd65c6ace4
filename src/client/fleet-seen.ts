/** Where in the fleet addresses were seen: the answer of a gateway, line by line. */
import type { z } from 'zod'
import type { FLEET_SEEN_LINES } from '../shared/contract/seen-parameters.ts'
import { ClientFailure, problemFailure } from './client-failure.ts'
import type { GatewayClient, QueryPairs } from './gateway-client.ts'

export type SeenAt = z.infer<typeof FLEET_SEEN_LINES.address>
export type SeenFailure = z.infer<typeof FLEET_SEEN_LINES.failure>
export type FleetSeenEnd = z.infer<typeof FLEET_SEEN_LINES.end>
export type SeenLine = SeenAt | SeenFailure | z.infer<typeof FLEET_SEEN_LINES.progress> | FleetSeenEnd

export interface ReceivedLine {
  readonly line: SeenLine
  /** As the gateway sent it. */
  readonly text: string
  /** The header Date of the answer, sent before the search began; null: there was none. */
  readonly askedAt: string | null
}

/** The last line is the one with `end`. Fails with a ClientFailure if there is none. */
export async function* seenLines(
  client: GatewayClient,
  query: QueryPairs,
  signal: AbortSignal,
): AsyncGenerator<ReceivedLine> {
  using answer = await client.open('/v1/seen', { query, signal })
  const askedAt = answer.headers.get('date')
  const decoder = new TextDecoder()
  let rest = ''
  let hasEnded = false
  for await (const piece of answer.body) {
    const texts = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = texts.pop() ?? ''
    for (const text of texts) {
      const line = JSON.parse(text) as SeenLine | { readonly error: SeenFailure['error'] }
      if ('error' in line && !('device' in line))
        throw problemFailure(STATUS_OF_LINE, new Headers(), JSON.stringify(line.error))
      hasEnded ||= 'end' in line
      yield { line, text, askedAt }
    }
  }
  if (!hasEnded)
    throw new ClientFailure(
      'incomplete',
      'the answer broke off: addresses may have been seen elsewhere too',
      {
        code: 'broken-off',
      },
    )
}

/** A failure after the first byte has no status of its own. */
const STATUS_OF_LINE = 500

/** Why the answer is not complete, or undefined if it is. */
export function incompleteText({ complete, unanswered, partial }: FleetSeenEnd): string | undefined {
  if (complete) return undefined
  const reasons = [
    ...(unanswered.length > 0 ? [`not answered by ${unanswered.join(', ')}`] : []),
    ...(partial.length > 0
      ? [
          `not everything was read on ${partial.join(', ')}: blocks are damaged, --verify-bytes-max was reached, or a device that cannot search did not prove that it sent everything, or not within an hour`,
        ]
      : []),
  ]
  return `incomplete: ${reasons.join('; ')}`
}
