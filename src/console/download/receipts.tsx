/** The user's downloads with their outcomes. */

import { useState } from 'preact/hooks'
import { bytesText, countText, packetsText } from '../../shared/base/amounts.ts'
import { listText } from '../../shared/base/list-text.ts'
import { answered, gateway, type Schemas } from '../base/ask-gateway.ts'
import { useAction, useAsked } from '../base/asked.ts'
import { instantOfIso, instantText, type Zone } from '../base/instants.ts'
import { type Changes, changed, currentState, formatPageState, isNanoseconds } from '../base/page-url.ts'
import { isLook } from '../inside/look-parameters.ts'
import { ConfirmButton } from '../parts/confirm-button.tsx'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { Hint } from '../parts/hint.tsx'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { isResumable, restOf } from './receipt-rest.ts'
import { startDownload } from './start-download.ts'

const EVERY_MS = 2_000
const SHOWN_MAX = 10
/** Downloads made by the packet view are among them. */
const ASKED_MAX = 60

type Receipt = Schemas['Receipt']

/** `started` counts the downloads of this page: the list is requested again with each. */
export function Receipts({ started, onStart }: { readonly started: number; readonly onStart: () => void }) {
  const { download: texts } = TEXTS
  const list = useAsked(askReceipts, { key: String(started), everyMs: EVERY_MS })
  return (
    <section class="receipts">
      <h2>{texts.receipts}</h2>
      <Failure failure={list.failure} />
      {list.value?.length === 0 ? <p class="quiet">{texts.noReceipts}</p> : null}
      <ul>
        {(list.value ?? []).map((receipt) => (
          <ReceiptRow key={receipt.id} receipt={receipt} onStart={onStart} />
        ))}
      </ul>
    </section>
  )
}

async function askReceipts(signal: AbortSignal): Promise<readonly Receipt[]> {
  const params = { query: { Limit: ASKED_MAX } }
  const { requests } = await answered(gateway.GET('/v1/requests', { params, signal }))
  return requests.filter((receipt) => !isLook(receipt)).slice(0, SHOWN_MAX)
}

function ReceiptRow({ receipt, onStart }: { readonly receipt: Receipt; readonly onStart: () => void }) {
  const { zone } = useSurroundings()
  const { id, status, packets, bytes, error } = receipt
  return (
    <li data-request={id} data-status={status}>
      <span class={`state state-${status}`}>{status}</span>
      <Value text={id} shown={id.slice(0, 8)} hasSign />
      <span class="mono" title={`${countText(bytes)} B`}>
        {packets === null ? '' : `${packetsText(packets)} · `}
        {bytesText(bytes)}
      </span>
      <span class="quiet mono">{instantText(instantOfIso(receipt.startedAt), zone, 0)}</span>
      <Selection receipt={receipt} />
      <Missing receipt={receipt} />
      {error === null ? null : <span class="bad">{error.detail}</span>}
      <Continuing receipt={receipt} onStart={onStart} />
    </li>
  )
}

/** What was asked for: devices, and the range or the capture. */
function Selection({ receipt: { query, devices } }: { readonly receipt: Receipt }) {
  const { zone } = useSurroundings()
  const asked = new URLSearchParams(query)
  const names = listText(asked.get('Device')?.split(',') ?? devices.map(({ device }) => device))
  const ends = [asked.get('TSBegin'), asked.get('TSEnd')].map((end) => endText(end, zone))
  const range = asked.get('StreamName') ?? ends.filter((end) => end !== '').join(` ${TEXTS.timeline.to} `)
  return <span class="quiet">{[names, range].filter((text) => text !== '').join(' · ')}</span>
}

function endText(end: string | null, zone: Zone): string {
  return end !== null && isNanoseconds(end) ? instantText(BigInt(end), zone, 0) : (end ?? '')
}

/** The devices and times that are not in the file. */
function Missing({ receipt }: { readonly receipt: Receipt }) {
  const { zone } = useSurroundings()
  return receipt.devices.map(({ device, missing }) =>
    missing === null ? null : (
      <span key={device} class="bad">
        {TEXTS.download.missing(device, endText(missing.fromNs, zone), endText(missing.toNs, zone))}
      </span>
    ),
  )
}

interface ContinuingProps {
  readonly receipt: Receipt
  readonly onStart: () => void
}

/** If a client left or was reset, only that client knows how much it received. */
const UNKNOWN_END: ReadonlySet<string> = new Set(['replica-lost', 'client-timeout', 'draining'])

/** How to get the rest, if possible. */
function Continuing({ receipt, onStart }: ContinuingProps) {
  const rest = restOf(receipt)
  if (rest !== undefined) return <RestLink rest={rest} />
  if (!isResumable(receipt)) return null
  const needsOffset = receipt.status === 'client-gone' || UNKNOWN_END.has(receipt.error?.code ?? '')
  const Button = needsOffset ? ContinueBehind : ContinueButton
  return <Button receipt={receipt} onStart={onStart} />
}

function RestLink({ rest }: { readonly rest: Changes }) {
  const { download: texts } = TEXTS
  return (
    <>
      <a class="button" href={formatPageState(changed(currentState(), rest))}>
        {texts.rest}
      </a>
      <Hint about={texts.rest} text={texts.restHint} />
    </>
  )
}

function ContinueButton({ receipt, onStart }: ContinuingProps) {
  const { download: texts } = TEXTS
  const { isBusy, failure, run } = useAction()
  const goOn = async (): Promise<void> => {
    await startDownload(`${receipt.path}?Resume=${receipt.id}`)
    onStart()
  }
  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => run(goOn)}>
        {texts.continue}
      </button>
      <Hint about={texts.continue} text={texts.continueHint} />
      <Failure failure={failure} />
    </>
  )
}

function ContinueBehind({ receipt, onStart }: ContinuingProps) {
  const { download: texts } = TEXTS
  const [offset, setOffset] = useState('')
  const goOn = async (): Promise<void> => {
    await startDownload(`${receipt.path}?Resume=${receipt.id}&Offset=${offset}`)
    onStart()
  }
  return (
    <ConfirmButton label={texts.continue} action={goOn}>
      <p>{texts.continueOffset}</p>
      <label>
        {texts.offset}
        <input
          value={offset}
          inputMode="numeric"
          pattern="\d+"
          required
          onInput={(event) => setOffset(event.currentTarget.value)}
        />
      </label>
    </ConfirmButton>
  )
}
