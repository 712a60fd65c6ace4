/** Receipts: the outcome of downloads, kept for 24 hours. */
import { isOf } from '../../../shared/base/caller.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import { takeNoParameters, takeParameters } from '../../../shared/contract/request-parameters.ts'
import { RECEIPT_PARAMETERS } from '../../../shared/query/download/gateway-options.ts'
import { type StoredReceipt, shownReceipt } from '../../serve/receipt.ts'
import { madeOf, maySee } from '../request/caller-bounds.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { DownloadsParts } from './downloads-parts.ts'

const REQUEST_ID = /^[0-9a-f-]{36}$/

/** The outcome of a download. */
export async function showReceipt(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  takeNoParameters(ctx)
  ctx.set('Cache-Control', 'no-store')
  ctx.body = shownReceipt(await visibleReceipt(ctx, parts, ctx.params.id ?? ''))
}

/** The outcomes of the caller's own downloads. */
export async function listReceipts(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  const { limit } = takeParameters(ctx, RECEIPT_PARAMETERS)
  const receipts = await parts.downloads.receipts.list(ctx.state.caller?.name ?? '', limit)
  const visible = receipts.filter((receipt) => isOwn(ctx, receipt) && maySeeReceipt(ctx, parts, receipt))
  ctx.set('Cache-Control', 'no-store')
  ctx.body = { requests: visible.map(shownReceipt) }
}

/** The receipt, for the user whose request it was. Fails with unknown-request. */
export async function ownReceipt(
  ctx: RouteContext,
  parts: DownloadsParts,
  id: string,
): Promise<StoredReceipt> {
  const receipt = await visibleReceipt(ctx, parts, id)
  if (isOwn(ctx, receipt)) return receipt
  throw unknownRequest(id)
}

/** The receipt, if the caller may see it. Fails with unknown-request. */
async function visibleReceipt(ctx: RouteContext, parts: DownloadsParts, id: string): Promise<StoredReceipt> {
  const receipt = await find(parts, id)
  if (receipt !== undefined && maySeeReceipt(ctx, parts, receipt)) return receipt
  throw unknownRequest(id)
}

function maySeeReceipt(ctx: RouteContext, parts: DownloadsParts, receipt: StoredReceipt): boolean {
  return maySee(ctx, parts, madeOf(ownerOf(receipt), receipt.resume))
}

function isOwn({ state: { caller } }: RouteContext, receipt: StoredReceipt): boolean {
  return caller !== undefined && isOf(caller, ownerOf(receipt))
}

function ownerOf({ user, startedAt }: StoredReceipt) {
  return { user, madeMs: Date.parse(startedAt) }
}

/** The same for a missing id and for another user's. */
function unknownRequest(id: string): CapfleetError {
  return new CapfleetError(
    'unknown-request',
    `no download of yours in the last 24 hours has the id ${JSON.stringify(id.slice(0, 64))}; it is the Capfleet-Request-Id of an answer`,
  )
}

async function find(parts: DownloadsParts, id: string): Promise<StoredReceipt | undefined> {
  return REQUEST_ID.test(id) ? parts.downloads.receipts.find(id) : undefined
}
