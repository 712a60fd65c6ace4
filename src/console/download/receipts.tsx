/** The downloads of this tab, with what became of them. */
import { useState } from 'preact/hooks'
import { bytesText, countText } from '../base/amounts.ts'
import { useAction, useAsked } from '../base/asked.ts'
import { answered, gateway, Problem, type Schemas } from '../base/ask-gateway.ts'
import { instantText } from '../base/instants.ts'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { startDownload } from './start-download.ts'

const RUNNING_EVERY_MS = 1_000
const STORED = 'capfleet-downloads'
/** More than somebody remembers. */
const KEPT_MAX = 20

export function keptDownloads(): readonly string[] {
  try {
    return JSON.parse(sessionStorage.getItem(STORED) ?? '[]') as string[]
  } catch {
    return []
  }
}

export function keepDownload(requestId: string): readonly string[] {
  const next = [requestId, ...keptDownloads()].slice(0, KEPT_MAX)
  try {
    sessionStorage.setItem(STORED, JSON.stringify(next))
  } catch {
    // They are listed until the page is left.
  }
  return next
}

export function Receipts({
  ids,
  onStart,
}: {
  readonly ids: readonly string[]
  readonly onStart: (id: string) => void
}) {
  const { download: texts } = TEXTS
  return (
    <section class="receipts">
      <h2>{texts.receipts}</h2>
      {ids.length === 0 ? <p class="quiet">{texts.noReceipts}</p> : null}
      <ul>
        {ids.map((id) => (
          <ReceiptRow key={id} id={id} onStart={onStart} />
        ))}
      </ul>
    </section>
  )
}

type Receipt = Schemas['Receipt']

function ReceiptRow({ id, onStart }: { readonly id: string; readonly onStart: (id: string) => void }) {
  const { zone } = useSurroundings()
  const [hasEnded, setEnded] = useState(false)
  const receipt = useAsked(
    async (signal) => {
      const value = await askReceipt(id, signal)
      if (value !== undefined && value.status !== 'streaming') setEnded(true)
      return value
    },
    { key: `${id} ${hasEnded}`, everyMs: hasEnded ? 0 : RUNNING_EVERY_MS },
  )
  const { value } = receipt
  return (
    <li data-request={id} data-status={value?.status}>
      <span class={`state state-${value?.status ?? 'waiting'}`}>{value?.status ?? 'waiting'}</span>
      <Value text={id} shown={id.slice(0, 8)} />
      {value === undefined ? null : <ReceiptFacts receipt={value} />}
      {value === undefined ? null : (
        <span class="quiet mono">
          {instantText(BigInt(Date.parse(value.startedAt)) * 1_000_000n, zone, 0)}
        </span>
      )}
      {value !== undefined && isContinuable(value) ? (
        <ContinueButton receipt={value} onStart={onStart} />
      ) : null}
      <Failure failure={receipt.failure} />
    </li>
  )
}

function ReceiptFacts({ receipt }: { readonly receipt: Receipt }) {
  return (
    <span class="mono" title={`${countText(receipt.bytes)} B`}>
      {receipt.packets === null ? '' : `${countText(receipt.packets)} ${TEXTS.download.packets} · `}
      {bytesText(receipt.bytes)}
      {receipt.error === null ? '' : ` · ${receipt.error.detail}`}
    </span>
  )
}

function isContinuable({ status }: Receipt): boolean {
  return status === 'failed' || status === 'client-gone'
}

function ContinueButton({
  receipt,
  onStart,
}: {
  readonly receipt: Receipt
  readonly onStart: (id: string) => void
}) {
  const { isBusy, failure, run } = useAction()
  return (
    <>
      <button
        type="button"
        disabled={isBusy}
        title={TEXTS.download.continueHint}
        onClick={() => run(async () => onStart(await startDownload(`${receipt.path}?Resume=${receipt.id}`)))}
      >
        {TEXTS.download.continue}
      </button>
      {failure === undefined ? null : <span class="bad">{failure}</span>}
    </>
  )
}

/** undefined: it has not begun, or waits for a stream. */
async function askReceipt(id: string, signal: AbortSignal): Promise<Receipt | undefined> {
  try {
    return await answered(gateway.GET('/v1/requests/{id}', { params: { path: { id } }, signal }))
  } catch (error) {
    if (error instanceof Problem && error.code === 'unknown-request') return undefined
    throw error
  }
}
