/** My downloads, with what became of them. */
import { bytesText, countText } from '../base/amounts.ts'
import { openAnswer, type Schemas } from '../base/ask-gateway.ts'
import { useAction, useAsked } from '../base/asked.ts'
import { instantText } from '../base/instants.ts'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { startDownload } from './start-download.ts'

const EVERY_MS = 2_000
const SHOWN_MAX = 10

type Receipt = Schemas['Receipt']

/** `started` counts the downloads of this page: the list is asked for anew with each. */
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
  const answer = await openAnswer(`v1/requests?Limit=${SHOWN_MAX}`, { signal })
  return ((await answer.json()) as { readonly requests: readonly Receipt[] }).requests
}

function ReceiptRow({ receipt, onStart }: { readonly receipt: Receipt; readonly onStart: () => void }) {
  const { zone } = useSurroundings()
  const { id, status, packets, bytes, error } = receipt
  return (
    <li data-request={id} data-status={status}>
      <span class={`state state-${status}`}>{status}</span>
      <Value text={id} shown={id.slice(0, 8)} />
      <span class="mono" title={`${countText(bytes)} B`}>
        {packets === null ? '' : `${countText(packets)} ${TEXTS.download.packets} · `}
        {bytesText(bytes)}
      </span>
      <span class="quiet mono">
        {instantText(BigInt(Date.parse(receipt.startedAt)) * 1_000_000n, zone, 0)}
      </span>
      {error === null ? null : <span class="bad">{error.detail}</span>}
      {status === 'failed' || status === 'client-gone' ? (
        <ContinueButton receipt={receipt} onStart={onStart} />
      ) : null}
    </li>
  )
}

function ContinueButton({ receipt, onStart }: { readonly receipt: Receipt; readonly onStart: () => void }) {
  const { isBusy, failure, run } = useAction()
  const goOn = async (): Promise<void> => {
    await startDownload(`${receipt.path}?Resume=${receipt.id}`)
    onStart()
  }
  return (
    <>
      <button type="button" disabled={isBusy} title={TEXTS.download.continueHint} onClick={() => run(goOn)}>
        {TEXTS.download.continue}
      </button>
      {failure === undefined ? null : <span class="bad">{failure}</span>}
    </>
  )
}
