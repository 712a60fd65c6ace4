/** What is stored about a download for 24 hours: the body of /v1/requests/{id}, and what Resume needs. */
import { formatGatewayOptions } from '../../shared/query/download/format-download-query.ts'
import type { GatewayOptions } from '../../shared/query/download/gateway-options.ts'
import type { DeviceResult } from '../fetch/body/body.ts'
import type { BodyPlaces } from '../fetch/body/position.ts'
import { type KeptPlan, keepShortPlan, shownQueryOf } from '../fleet/plan/kept-plan.ts'
import type { DownloadPlan } from '../fleet/plan/plan.ts'

/**
 * complete: every packet that was requested. truncated: ended at MaxBytes or MaxPackets; `nextNs` is the first packet
 * left out. partial: devices are missing (OnError=partial), or damaged blocks. unverified: a device ends its answers
 * by closing the connection, which looks the same as being cut off, or could not count the damage of an earlier stream. failed: cut after the first byte, or rejected
 * before it. client-gone: the client left first. streaming: still running.
 */
export type DownloadStatus =
  | 'streaming'
  | 'complete'
  | 'truncated'
  | 'partial'
  | 'unverified'
  | 'failed'
  | 'client-gone'

/** Members whose value may exceed a double's precision hold decimal text. */
export interface Receipt {
  readonly id: string
  readonly status: DownloadStatus
  readonly user: string
  readonly startedAt: string
  readonly endedAt: string | null
  readonly waitedMs: number | null
  /** Path and query as understood: times in nanoseconds, without unknown parameters. */
  readonly path: string
  readonly query: string
  readonly resumedId: string | null
  readonly packets: string | null
  /** Bytes of the body as sent, compressed or not. */
  readonly bytes: string
  readonly nextNs: string | null
  readonly sha256: string | null
  readonly duplicates: string | null
  readonly error: { readonly code: string; readonly detail: string } | null
  readonly devices: readonly ReceiptDevice[]
}

export interface ReceiptDevice {
  readonly device: string
  /** failed: the device broke off. incomplete: the download ended, or was left, before all of it had been consumed. */
  readonly status: DeviceResult['status'] | 'streaming' | 'incomplete' | 'failed'
  readonly packets: string | null
  readonly bytes: string
  readonly firstNs: string | null
  readonly lastNs: string | null
  /** Blocks of packets that the device left out as damaged. */
  readonly corruptBlocks: string | null
  readonly retries: number
  readonly outOfOrder: number
  readonly stalledMs: number
  readonly clockOffsetNs: string | null
  readonly clockErrorNs: string | null
  readonly missing: { readonly fromNs: string; readonly toNs: string } | null
  readonly error: { readonly code: string; readonly detail: string } | null
}

/** What a later request needs to produce the same body again; never shown. */
export interface ResumeFacts extends KeptPlan {
  readonly onError: GatewayOptions['onError']
  readonly align: boolean
  /** Hash of the caller's own parameters, which identifies repeated addresses. */
  readonly askedHash: string
  /** null: nothing of the body was produced, or it cannot be continued. */
  readonly places: BodyPlaces | null
  /** Offset of this body's first byte in the whole body. */
  readonly startBytes: string
  /** Bytes of a file header that were sent before that byte, because the body begins in the middle. */
  readonly headerBytes: number
  /** For a cut download: whether nothing that was sent was discarded with its connection. */
  readonly isHanded: boolean
}

/** A receipt as stored in Redis. */
export interface StoredReceipt extends Omit<Receipt, 'query'> {
  readonly resume: ResumeFacts
}

/** The part of a receipt that callers may see. */
export function shownReceipt({ resume, ...receipt }: StoredReceipt): Receipt {
  return { ...receipt, query: echoedQuery(resume) }
}

/** How the plan was made, for ResumeFacts. */
export function resumeFactsOf(
  plan: DownloadPlan,
  options: GatewayOptions,
): KeptPlan & Pick<ResumeFacts, 'onError' | 'align'> {
  return {
    ...keepShortPlan(plan),
    onError: options.onError,
    align: options.align,
  }
}

/** `query` with the gateway's own parameters that affect the body. */
function echoedQuery({ onError, align, ...kept }: ResumeFacts): string {
  const own = formatGatewayOptions({ onError, align })
  return [shownQueryOf(kept), own].filter((text) => text !== '').join('&')
}
