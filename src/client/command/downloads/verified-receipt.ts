/** An answer counts as complete only if the gateway's receipt confirms it. */
import { setTimeout as delay } from 'node:timers/promises'
import type { z } from 'zod'
import type { RECEIPT } from '../../../shared/contract/gateway-answers.ts'
import { ClientFailure } from '../../client-failure.ts'
import type { GatewayClient } from '../../gateway-client.ts'
import { brokenOff } from './download-answer.ts'

export type Receipt = z.infer<typeof RECEIPT>

/** The outcome of one answer. */
export interface ReceivedBody {
  readonly bytes: number
  readonly sha256: string
}

interface Answered {
  readonly requestId: string
  readonly received: ReceivedBody
  readonly signal: AbortSignal
}

const RECEIPT_EVERY_MS = 500
const RECEIPT_ASKED_MAX = 10

/** The receipt of an answer that arrived as it was sent. Fails with a ClientFailure for any other. */
export async function verifiedReceipt(
  client: GatewayClient,
  { requestId, received, signal }: Answered,
): Promise<Receipt> {
  const { bytes, sha256 } = received
  const receipt = await endedReceipt(client, requestId, signal)
  // The gateway died after its last byte: as with any answer that broke off, the next request continues after it.
  if (receipt.sha256 === null) throw brokenOff(`the gateway has not seen the end of request ${requestId}`)
  if (receipt.bytes === String(bytes) && receipt.sha256 === sha256) return receipt
  throw new ClientFailure(
    'incomplete',
    `the response differs from what the gateway sent: ${bytes} bytes with the sha256 ${sha256} arrived, but receipt ${requestId} has ` +
      `${receipt.bytes} with ${receipt.sha256}; download again with --force`,
    { code: 'wrong-digest' },
  )
}

/** The failure of a request that broke off because someone cancelled it, so that it must not be resumed at once. */
export async function cancellation(
  client: GatewayClient,
  requestId: string,
  signal: AbortSignal,
): Promise<ClientFailure | undefined> {
  const path = `/v1/requests/${encodeURIComponent(requestId)}`
  const answer = await client.json<Receipt>(path, { signal }).catch(() => undefined)
  const error = answer?.value.error
  if (error?.code !== CANCELLED) return undefined
  return new ClientFailure('incomplete', error.detail, { code: CANCELLED })
}

const CANCELLED = 'download-cancelled'

/** Another gateway may learn of the end a moment later. */
async function endedReceipt(client: GatewayClient, requestId: string, signal: AbortSignal): Promise<Receipt> {
  for (let asked = 1; ; asked += 1) {
    const { value } = await client.json<Receipt>(`/v1/requests/${encodeURIComponent(requestId)}`, { signal })
    if (value.status !== 'streaming' || asked === RECEIPT_ASKED_MAX) return value
    await delay(RECEIPT_EVERY_MS, undefined, { signal })
  }
}
