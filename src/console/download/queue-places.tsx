/** Streams and waiting requests on the selected devices, which a download started now would have to wait for. */
import { messageOf } from '../base/ask-gateway.ts'
import { useQueue } from '../base/queue.ts'
import { TEXTS } from '../texts.ts'
import { queueCounts, requestsOf } from './queue-counts.ts'

interface QueuePlacesProps {
  readonly user: string
  /** undefined: not known yet, so all. */
  readonly devices: readonly string[] | undefined
}

export function QueuePlaces({ user, devices }: QueuePlacesProps) {
  const { download: texts } = TEXTS
  const queue = useQueue()
  if (queue.value === undefined)
    return (
      <p class="queue-places" role="status">
        <span class="quiet">{texts.queue}</span>{' '}
        {queue.failure === undefined ? TEXTS.loading : messageOf(queue.failure)}
      </p>
    )
  const requests = requestsOf(queue.value, devices)
  const counts = queueCounts(requests)
  const own = requests.filter((request) => request.user === user)
  return (
    <p class="queue-places" role="status">
      <span class="quiet">{texts.queue}</span>{' '}
      {requests.length === 0 ? texts.queueEmpty : texts.queueOf(counts)}
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
