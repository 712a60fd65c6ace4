/** Reports the position of a request in the queue while it waits for the head of its answer. */

import { setTimeout as delay } from 'node:timers/promises'
import type { z } from 'zod'
import { listText } from '../../../shared/base/list-text.ts'
import type { QUEUE } from '../../../shared/contract/gateway-answers.ts'
import type { GatewayClient } from '../../gateway-client.ts'
import { shownDuration } from '../common/list-output.ts'

type Queued = z.infer<typeof QUEUE>['requests'][number]

/** A download that finds a free stream is answered before this. */
const FIRST_MS = 700
const EVERY_MS = 2_000
/** The gateway's Date header has whole seconds. */
const DATE_STEP_MS = 1_500

/** Polls the gateway until disposed; calls `tell` with each position. Reports nothing if the queue cannot be read. */
export function watchQueue(client: GatewayClient, tell: (text: string) => void): Disposable {
  const stop = new AbortController()
  void follow(client, tell, stop.signal).catch(() => undefined)
  return { [Symbol.dispose]: () => stop.abort() }
}

async function follow(
  client: GatewayClient,
  tell: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const sentMs = performance.now()
  await delay(FIRST_MS, undefined, { signal })
  for (;;) {
    const { value, headers } = await client.json<z.infer<typeof QUEUE>>('/v1/queue', { signal })
    const nowMs = Date.parse(headers.get('date') ?? '')
    const own = ownRequest(client, value.requests, nowMs - (performance.now() - sentMs) - DATE_STEP_MS)
    if (own !== undefined) tell(placeText(own))
    await delay(EVERY_MS, undefined, { signal })
  }
}

/** Its id only comes with the head, so take this user's first request since then. */
function ownRequest(
  { access }: GatewayClient,
  requests: readonly Queued[],
  sinceMs: number,
): Queued | undefined {
  const { credentials } = access
  const user =
    credentials !== undefined && 'user' in credentials ? credentials.user : subjectOf(credentials?.token)
  return requests
    .filter((one) => one.state === 'waiting' && one.user === user && Date.parse(one.enqueuedAt) >= sinceMs)
    .toSorted((a, b) => Date.parse(a.enqueuedAt) - Date.parse(b.enqueuedAt))[0]
}

/** The user of a token issued by a gateway, as the queue shows them. */
function subjectOf(token: string | undefined): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString())
    return typeof claims === 'object' && claims !== null && 'sub' in claims && typeof claims.sub === 'string'
      ? claims.sub
      : undefined
  } catch {
    return undefined
  }
}

function placeText({ position, etaMs, devices }: Queued): string {
  const when = etaMs === null ? '' : `, about ${shownDuration(etaMs)}`
  return `waiting for ${listText(devices)} at position ${position ?? '?'} in the queue${when}`
}
