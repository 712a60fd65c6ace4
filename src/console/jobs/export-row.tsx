/** An export: its live progress, its files, and the possible actions. */

import { bytesText, countText, packetsText, percentText } from '../../shared/base/amounts.ts'
import { listText } from '../../shared/base/list-text.ts'
import { answered, BASE, gateway, type Schemas } from '../base/ask-gateway.ts'
import { useAction } from '../base/asked.ts'
import { durationText, instantOfIso, instantText } from '../base/instants.ts'
import { may } from '../base/session.ts'
import { labelOf } from '../parameter-labels.ts'
import { ConfirmButton } from '../parts/confirm-button.tsx'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { useEventSource } from './event-source.ts'

type Export = Schemas['Export']

export const ENDED: ReadonlySet<Export['state']> = new Set<Export['state']>([
  'complete',
  'partial',
  'failed',
  'cancelled',
])

interface ExportRowProps {
  readonly order: Export
  readonly isMarked: boolean
  /** Whether its progress is streamed, instead of only coming with the next list. */
  readonly isFollowed: boolean
  readonly onChange: (next: Export) => void
  readonly onGone: () => void
}

export function ExportRow({ order, isMarked, isFollowed, onChange, onGone }: ExportRowProps) {
  const { zone } = useSurroundings()
  const path = isFollowed && !ENDED.has(order.state) ? `v1/exports/${order.id}/events` : undefined
  useEventSource(path, ['export'], (_name, data) => onChange(JSON.parse(data) as Export))
  const bytes = order.files.reduce((sum, file) => sum + BigInt(file.bytes), 0n)
  return (
    <tr data-export={order.id} data-state={order.state} class={isMarked ? 'marked' : undefined}>
      <td>
        <span class={`state state-${order.state}`}>{order.state}</span>
        {order.error === null ? null : <p class="bad">{order.error.detail}</p>}
      </td>
      <td class="mono">
        {instantText(instantOfIso(order.createdAt), zone, 0)}
        <br />
        <Value text={order.id} shown={order.id.slice(0, 8)} hasSign />
        {order.expiresAt === null ? null : (
          <p class="quiet">
            {TEXTS.exports.expires} {instantText(instantOfIso(order.expiresAt), zone, 0)}
          </p>
        )}
      </td>
      <td>
        <QueryText query={order.query} devices={order.devices.map(({ device }) => device)} />
        {order.reason === null ? null : <p class="quiet">{order.reason}</p>}
      </td>
      <td>{order.user}</td>
      <td class="number" title={`${countText(bytes)} B`}>
        {bytesText(order.files.length === 0 ? order.progress.writtenBytes : bytes)}
      </td>
      <td>
        <Progress order={order} />
      </td>
      <td class="card-actions">
        <ExportActions order={order} onChange={onChange} onGone={onGone} />
      </td>
    </tr>
  )
}

function Progress({ order: { progress, state, devices } }: { readonly order: Export }) {
  const missing = devices.flatMap(({ device, missing: parts }) => (parts.length === 0 ? [] : [device]))
  const { ratio, bytesPerSecond, etaMs, stage } = progress
  return (
    <>
      {ENDED.has(state) ? null : (
        <>
          <progress max={1} value={ratio ?? undefined} aria-label={stage} />
          <span class="mono">
            {' '}
            {ratio === null ? '' : percentText(ratio)} {stage}
            {bytesPerSecond === null ? '' : ` · ${bytesText(bytesPerSecond)}/s`}
            {etaMs === null ? '' : ` · ${durationText(BigInt(etaMs) * 1_000_000n)}`}
          </span>
        </>
      )}
      {progress.waiting === null ? null : (
        <p class="warning">
          {TEXTS.exports.waitsFor(progress.waiting.device)} {progress.waiting.detail}
        </p>
      )}
      {missing.length === 0 ? null : (
        <span class="bad">
          {TEXTS.exports.missing}: {listText(missing)}
        </span>
      )}
    </>
  )
}

function ExportActions({ order, onChange, onGone }: Pick<ExportRowProps, 'order' | 'onChange' | 'onGone'>) {
  const { exports: texts } = TEXTS
  const { session } = useSurroundings()
  const { isBusy, failure, run } = useAction()
  const options = { params: { path: { id: order.id } } }
  const mayChange = may(session, 'export:create')
  const remove = async (): Promise<void> => {
    await answered(gateway.DELETE('/v1/exports/{id}', options))
    onGone()
  }
  return (
    <div class="actions">
      {order.files.map((file, index) => (
        <a
          key={file.name}
          class="button"
          href={`${BASE}v1/exports/${order.id}/file?Part=${index + 1}`}
          download={file.name}
          title={`${file.name}: ${bytesText(file.bytes)}, ${packetsText(file.packets)}`}
        >
          {texts.file} {order.files.length > 1 ? index + 1 : ''}
        </a>
      ))}
      {order.files.length === 0 ? null : (
        <a class="button" href={`${BASE}v1/exports/${order.id}/manifest`} download={`${order.id}.json`}>
          {texts.manifest}
        </a>
      )}
      {mayChange && order.state === 'partial' ? (
        <button
          type="button"
          disabled={isBusy}
          onClick={() =>
            run(async () => {
              onChange(await answered(gateway.POST('/v1/exports/{id}/fill', options)))
              onGone()
            })
          }
        >
          {texts.fill}
        </button>
      ) : null}
      {mayChange ? (
        <ConfirmButton
          label={ENDED.has(order.state) ? texts.remove : texts.cancel}
          subject={order.id.slice(0, 8)}
          isDangerous
          action={remove}
        >
          <p>{ENDED.has(order.state) ? texts.removeSure : texts.cancelSure}</p>
        </ConfirmButton>
      ) : null}
      <Failure failure={failure} />
    </div>
  )
}

interface QueryTextProps {
  readonly query: string
  /** Shown if the query does not select devices. */
  readonly devices: readonly string[]
}

/** The query in the words of the page. */
export function QueryText({ query, devices }: QueryTextProps) {
  const { zone } = useSurroundings()
  const pairs = [...new URLSearchParams(query)].filter(
    ([name, value]) => name !== 'TSUnit' || value !== 'nanos',
  )
  const isSelected = pairs.some(([name]) => name === 'Device')
  const shown =
    isSelected || devices.length === 0 ? pairs : [['Device', listText(devices)] as const, ...pairs]
  return (
    <ul class="query">
      {shown.map(([name, value]) => (
        <li key={name}>
          <span class="quiet" title={name}>
            {labelOf(name)}
          </span>{' '}
          <Value
            text={value}
            shown={
              /^(TSBegin|TSEnd|Start|Stop)$/.test(name) && /^\d{17,20}$/.test(value)
                ? instantText(BigInt(value), zone)
                : value
            }
          />
        </li>
      ))}
    </ul>
  )
}
