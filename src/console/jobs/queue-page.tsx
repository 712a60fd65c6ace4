/** Streams and waiting requests, across all gateways. */
import { instantOfIso, instantText } from '../base/instants.ts'
import { useQueue } from '../base/queue.ts'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'

export function QueuePage() {
  const { zone } = useSurroundings()
  const { queue: texts } = TEXTS
  const queue = useQueue()
  const time = (iso: string | null) => (iso === null ? '' : instantText(instantOfIso(iso), zone, 0))
  return (
    <section aria-labelledby="queue-title">
      <h1 id="queue-title">{texts.title}</h1>
      <Failure failure={queue.failure} again={queue.again} />
      {queue.value === undefined && queue.failure === undefined ? <Waiting /> : null}
      {queue.value?.length === 0 ? <Empty>{texts.empty}</Empty> : null}
      {queue.value !== undefined && queue.value.length > 0 ? (
        <DataTable label={texts.title} columns={texts.columns} numbers={[4, 5, 6]}>
          {queue.value.map((request) => (
            <tr key={request.id}>
              <td>
                <span class={`state state-${request.state}`}>{request.state}</span>
              </td>
              <td>{request.user}</td>
              <td>{request.devices.join(', ')}</td>
              <td>{request.class}</td>
              <td class="number">{request.position ?? TEXTS.none}</td>
              <td class="number">{time(request.grantedAt ?? request.enqueuedAt)}</td>
              <td class="number">
                {request.etaMs === null ? TEXTS.none : `${Math.ceil(request.etaMs / 1_000)} s`}
              </td>
              <td>
                <Value text={request.replica} />
              </td>
            </tr>
          ))}
        </DataTable>
      ) : null}
    </section>
  )
}
