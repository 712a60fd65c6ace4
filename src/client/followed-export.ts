/** The progress of an export as reported by its gateway, across broken connections. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { z } from 'zod'
import type { EXPORT } from '../shared/contract/export-answers.ts'
import { ClientFailure } from './client-failure.ts'
import type { GatewayClient } from './gateway-client.ts'

export type Export = z.infer<typeof EXPORT>

const ENDED: ReadonlySet<Export['state']> = new Set(['complete', 'partial', 'failed', 'cancelled'])

/** Whether nothing more will happen to it on its own. */
export function hasEnded({ state }: Pick<Export, 'state'>): boolean {
  return ENDED.has(state)
}

export interface WatchOptions {
  readonly signal: AbortSignal
  /** Called with the failure before the gateway is asked again; waits. */
  readonly pause: (failure: ClientFailure) => Promise<void>
}

/**
 * Yields every received state of the export until it has ended. Fails with a ClientFailure if retrying is pointless.
 */
export async function* watchExport(
  client: GatewayClient,
  id: string,
  { signal, pause }: WatchOptions,
): AsyncGenerator<Export, void> {
  let lastEventId = ''
  for (;;) {
    try {
      for await (const event of events(client, id, { lastEventId, signal })) {
        lastEventId = event.id ?? lastEventId
        const state = JSON.parse(event.data) as Export
        yield state
        if (hasEnded(state)) return
      }
      // A gateway that ends its answer early is about to be replaced.
      throw new ClientFailure('incomplete', 'the gateway ended the events', {
        code: 'connection-broken',
        canRetry: true,
      })
    } catch (error) {
      if (!(error instanceof ClientFailure) || !error.canRetry) throw error
      await pause(error)
    }
  }
}

async function* events(
  client: GatewayClient,
  id: string,
  { lastEventId, signal }: { readonly lastEventId: string; readonly signal: AbortSignal },
): AsyncGenerator<EventSourceMessage, void> {
  using answer = await client.open(`/v1/exports/${encodeURIComponent(id)}/events`, {
    headers: { accept: 'text/event-stream', ...(lastEventId === '' ? {} : { 'last-event-id': lastEventId }) },
    signal,
  })
  const arrived: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => void arrived.push(event) })
  const decoder = new TextDecoder()
  for await (const piece of answer.body) {
    parser.feed(decoder.decode(piece, { stream: true }))
    for (const event of arrived.splice(0)) if (event.event === 'export') yield event
  }
}
