/** What is kept of a download for 24 hours: the body of /v1/requests/{id}, and what Resume needs. */
import { formatGatewayOptions } from '../../shared/query/format-download-query.ts'
import type { GatewayOptions } from '../../shared/query/gateway-options.ts'
import type { DeviceResult } from '../fetch/body.ts'
import type { BodyPlaces } from '../fetch/position.ts'
import { type KeptPlan, keepPlan } from '../fleet/kept-plan.ts'
import type { DownloadPlan } from '../fleet/plan.ts'

/**
 * complete: every packet asked for. truncated: ended at MaxBytes or MaxPackets, `nextNs` is the
 * first packet left out. partial: devices are missing (OnError=partial), or blocks that are damaged. unverified: a device ends its answers by closing the
 * connection, as a cut one ends too. failed: cut after the first
 * byte, or refused before it. client-gone: the client left first. streaming: it still runs.
 */
export type DownloadStatus =
  | 'streaming'
  | 'complete'
  | 'truncated'
  | 'partial'
  | 'unverified'
  | 'failed'
  | 'client-gone'

/** Members whose value is an integer beyond a double's reach hold it as decimal text. */
export interface Receipt {
  readonly id: string
  readonly status: DownloadStatus
  readonly user: string
  readonly startedAt: string
  readonly endedAt: string | null
  readonly waitedMs: number | null
  /** Path and query as understood: times in nanoseconds, no parameter that nobody knows. */
  readonly path: string
  readonly query: string
  readonly resumedId: string | null
  readonly packets: string | null
  /** Bytes of the body as it was sent, compressed or not. */
  readonly bytes: string
  readonly nextNs: string | null
  readonly sha256: string | null
  readonly duplicates: string | null
  readonly error: { readonly code: string; readonly detail: string } | null
  readonly devices: readonly ReceiptDevice[]
}

export interface ReceiptDevice {
  readonly device: string
  /** failed: the device broke off. incomplete: the download ended, or was left, before all of it had been taken. */
  readonly status: DeviceResult['status'] | 'streaming' | 'incomplete' | 'failed'
  readonly packets: string | null
  readonly bytes: string
  readonly firstNs: string | null
  readonly lastNs: string | null
  /** Blocks of packets that the device left out, because they are damaged. */
  readonly corruptBlocks: string | null
  readonly retries: number
  readonly outOfOrder: number
  readonly stalledMs: number
  readonly clockOffsetNs: string | null
  readonly clockErrorNs: string | null
  readonly missing: { readonly fromNs: string; readonly toNs: string } | null
  readonly error: { readonly code: string; readonly detail: string } | null
}

/** What a later request needs to make the same body again; never shown. */
export interface ResumeFacts extends KeptPlan {
  readonly onError: GatewayOptions['onError']
  readonly dedupNs: string | null
  readonly align: boolean
  /** The hash of the caller's own parameters, which tells a repeated address from another one. */
  readonly askedHash: string
  /** null: nothing was made of the body, or it cannot be continued. */
  readonly places: BodyPlaces | null
  /** Where in the whole body this one's first byte is. */
  readonly startBytes: string
  /** Bytes of a file header that were sent before that byte, because the body begins in the middle. */
  readonly headerBytes: number
  /** Of a download that was cut: nothing that was sent was thrown away with its connection. */
  readonly isHanded: boolean
}

/** A receipt as Redis has it. */
export interface StoredReceipt extends Omit<Receipt, 'query'> {
  readonly resume: ResumeFacts
}

/** The part of a receipt that callers may see. */
export function shownReceipt({ resume, ...receipt }: StoredReceipt): Receipt {
  return { ...receipt, query: echoedQuery(resume) }
}

/** How the plan came to be, for ResumeFacts. */
export function planFacts(
  plan: DownloadPlan,
  options: GatewayOptions,
): KeptPlan & Pick<ResumeFacts, 'onError' | 'dedupNs' | 'align'> {
  return {
    ...keepPlan(plan),
    onError: options.onError,
    dedupNs: options.dedupNs?.toString() ?? null,
    align: options.align,
  }
}

/** `query` with the gateway's own parameters that change the body. */
function echoedQuery({ query, onError, dedupNs, align }: ResumeFacts): string {
  const dedup = dedupNs === null ? undefined : BigInt(dedupNs)
  const own = formatGatewayOptions({ onError, dedupNs: dedup, align })
  return [query, own].filter((text) => text !== '').join('&')
}
