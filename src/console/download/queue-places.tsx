/** Who streams from and waits for the chosen devices: what a download started now has before it. */

import { answered, gateway } from '../base/ask-gateway.ts'
import { useAsked } from '../base/asked.ts'
import { TEXTS } from '../texts.ts'

const EVERY_MS = 2_000

export function QueuePlaces({ user }: { readonly user: string }) {
  const { download: texts } = TEXTS
  const queue = useAsked(async (signal) => (await answered(gateway.GET('/v1/queue', { signal }))).requests, {
    key: 'queue',
    everyMs: EVERY_MS,
  })
  const requests = queue.value ?? []
  const waiting = requests.filter(({ state }) => state === 'waiting')
  const own = requests.filter((request) => request.user === user)
  return (
    <p class="queue-places" role="status">
      <span class="quiet">{texts.queue}</span>{' '}
      {waiting.length === 0
        ? texts.queueEmpty
        : texts.queueOf(waiting.length, requests.length - waiting.length)}
      {own.map(({ id, state, position, etaMs }) => (
        <span key={id} class="mono">
          {' '}
          {state === 'waiting'
            ? texts.place(position, etaMs === null ? undefined : Math.ceil(etaMs / 1_000))
            : state}
        </span>
      ))}
    </p>
  )
}
