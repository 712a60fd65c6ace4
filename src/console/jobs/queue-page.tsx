/** Streams and waiting requests, across all gateways. */

import { bytesText, countText } from '../../shared/base/amounts.ts'
import { answered, gateway } from '../base/ask-gateway.ts'
import { useDevices } from '../base/devices.ts'
import { instantOfIso, instantText } from '../base/instants.ts'
import { formatPageState } from '../base/page-url.ts'
import { type QueuePlace, useQueue } from '../base/queue.ts'
import { may } from '../base/session.ts'
import { ConfirmButton } from '../parts/confirm-button.tsx'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { busyDevices } from './queue-reasons.ts'

/** Numbers of streams seldom change. */
const DEVICES_EVERY_MS = 10_000
const NAMED_MAX = 4

export function QueuePage() {
  const { zone } = useSurroundings()
  const { queue: texts } = TEXTS
  const queue = useQueue()
  const devices = useDevices(DEVICES_EVERY_MS).value ?? []
  const time = (iso: string | null) => (iso === null ? '' : instantText(instantOfIso(iso), zone, 0))
  return (
    <section aria-labelledby="queue-title">
      <h1 id="queue-title">{texts.title}</h1>
      <p class="quiet">{texts.explain}</p>
      <Failure failure={queue.failure} again={queue.again} />
      {queue.value === undefined && queue.failure === undefined ? <Waiting /> : null}
      {queue.value?.length === 0 ? <Empty>{texts.empty}</Empty> : null}
      {queue.value !== undefined && queue.value.length > 0 ? (
        <DataTable label={texts.title} columns={texts.columns} numbers={[4, 6, 7, 8]}>
          {queue.value.map((request) => (
            <tr key={request.id}>
              <td>
                <span class={`state state-${request.state}`}>{request.state}</span>
              </td>
              <td>{request.user}</td>
              <td class="wide">
                <DeviceNames names={request.devices} />
                <Reason text={reasonOf(request, queue.value ?? [], devices)} />
              </td>
              <td>
                <What request={request} />
              </td>
              <td class="number" title={request.bytes === null ? undefined : `${countText(request.bytes)} B`}>
                {request.bytes === null ? TEXTS.none : bytesText(request.bytes)}
              </td>
              <td>{request.class}</td>
              <td class="number">{request.position ?? TEXTS.none}</td>
              <td class="number">{time(request.grantedAt ?? request.enqueuedAt)}</td>
              <td class="number">
                {request.etaMs === null ? TEXTS.none : `${Math.ceil(request.etaMs / 1_000)} s`}
              </td>
              <td>
                <Value text={request.replica} />
              </td>
              <td class="card-actions">
                <CancelButton request={request} onCancelled={queue.again} />
              </td>
            </tr>
          ))}
        </DataTable>
      ) : null}
    </section>
  )
}

/** Unknown for requests of other users, unless one may see their downloads. */
function What({ request: { capture, fromNs, toNs, export: order } }: { readonly request: QueuePlace }) {
  const { zone } = useSurroundings()
  if (capture === null && fromNs === null && order === null) return <>{TEXTS.none}</>
  return (
    <>
      {capture === null ? null : <Value text={capture} />}
      {fromNs === null || toNs === null ? null : (
        <p class="mono">
          <Value text={fromNs} shown={instantText(BigInt(fromNs), zone, 3)} /> –{' '}
          <Value text={toNs} shown={instantText(BigInt(toNs), zone, 3)} />
        </p>
      )}
      {order === null ? null : (
        <a href={formatPageState({ view: 'exports', values: { export: order } })}>
          {TEXTS.queue.exportOf(order.slice(0, 8))}
        </a>
      )}
    </>
  )
}

/** For one's own downloads, and for administrators; exports are cancelled as a whole, in their own view. */
function CancelButton({
  request,
  onCancelled,
}: {
  readonly request: QueuePlace
  readonly onCancelled: () => void
}) {
  const { queue: texts } = TEXTS
  const { session } = useSurroundings()
  const isOwn = request.user === session.user
  const mayCancel = may(session, 'capture:download') && (isOwn || may(session, 'admin'))
  if (!mayCancel || request.export !== null || request.state === 'suspect') return null
  const cancel = async (): Promise<void> => {
    // All rows of a count or a search, which its user made as one.
    await answered(gateway.DELETE('/v1/queue/{id}', { params: { path: { id: request.request } } }))
    onCancelled()
  }
  return (
    <ConfirmButton
      label={texts.cancel}
      subject={`${request.user}, ${request.id.slice(0, 8)}`}
      isDangerous
      action={cancel}
    >
      <p>{request.state === 'waiting' ? texts.cancelWaiting : texts.cancelStreaming}</p>
      {request.request === request.id ? null : <p>{texts.cancelAll}</p>}
    </ConfirmButton>
  )
}

/** Why it does not stream; empty if it does. */
function reasonOf(
  request: QueuePlace,
  requests: readonly QueuePlace[],
  devices: Parameters<typeof busyDevices>[2],
): string {
  const { queue: texts } = TEXTS
  if (request.state === 'suspect') return texts.stillSending
  if (request.state === 'streaming' || devices.length === 0) return ''
  const busy = busyDevices(request, requests, devices)
  if (busy.length === 0) return texts.behind
  const named = busy
    .slice(0, NAMED_MAX)
    .map(({ device, used, usable, isKept }) =>
      isKept ? texts.keptFromExports(device, usable) : texts.busy(device, used, usable),
    )
  return [...named, ...(busy.length > NAMED_MAX ? [texts.others(busy.length - NAMED_MAX)] : [])].join(', ')
}

function Reason({ text }: { readonly text: string }) {
  return text === '' ? null : <p class="quiet">{text}</p>
}

/** A download of a large fleet has hundreds. */
function DeviceNames({ names }: { readonly names: readonly string[] }) {
  const others = names.slice(NAMED_MAX)
  const first = names.slice(0, NAMED_MAX).join(', ')
  if (others.length === 0) return <>{first}</>
  return (
    <details>
      <summary>
        {first} <span class="quiet">{TEXTS.queue.others(others.length)}</span>
      </summary>
      {others.join(', ')}
    </details>
  )
}
