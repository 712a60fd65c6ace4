/** Plans a download that has a receipt again, and determines where it continues: Resume and Offset. */

import { hash } from 'node:crypto'
import { listText } from '../../shared/base/list-text.ts'
import { PCAP_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import { DOWNLOAD_PARAMETERS } from '../../shared/query/download/download-parameters.ts'
import type { GatewayOptions } from '../../shared/query/download/gateway-options.ts'
import { DOWNLOAD_TABLES } from '../../shared/query/download/parse-download-query.ts'
import { badParameter, type Parameter } from '../../shared/query/query-parameters.ts'
import {
  COMMON_PARAMETERS,
  type GivenParameters,
  readParameters,
} from '../../shared/query/read-parameters.ts'
import type { ContinuedFrom } from '../fetch/body/continue-from.ts'
import { queryAgain } from '../fleet/plan/kept-plan.ts'
import { type DownloadPlan, planDownload } from '../fleet/plan/plan.ts'
import type { BoundedQuery } from '../fleet/plan/within-bounds.ts'
import type { StoredReceipt } from './receipt.ts'

/** The request that is continued, and what its client has of the body. */
export interface ResumedRequest extends ContinuedFrom {
  readonly id: string
}

/** Parameters that may differ between a download and its continuation. */
const FREE_PARAMETERS: ReadonlySet<string> = new Set(
  [...DOWNLOAD_TABLES.fleet, COMMON_PARAMETERS]
    .flatMap((rows): Parameter[] => Object.values(rows))
    .filter(({ leavesBody }) => leavesBody === true)
    .map(({ name }) => name),
)

/** The parameters in canonical order, as text; "" if only free parameters are given. */
function askedText(given: GivenParameters): string {
  return [...given]
    .filter(([name]) => !FREE_PARAMETERS.has(name))
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join('&')
}

/** Identifies repeated addresses, even if their times are relative. */
export function askedHash(path: string, given: GivenParameters): string {
  return hash('sha256', `${path}?${askedText(given)}`)
}

/** The address may be that of the first request, or its path with only Resume and Offset. */
export function checkSameRequest(receipt: StoredReceipt, path: string, given: GivenParameters): void {
  const same = askedHash(path, given) === receipt.resume.askedHash
  const alone = path === receipt.path && askedText(given) === ''
  if (same || alone) return
  throw badParameter(
    'Resume',
    `resumes exactly what request ${receipt.id} requested from ${receipt.path}; repeat that address, or give only Resume and Offset`,
  )
}

/** The same query with absolute times, for the same devices. Fails with bad-parameter. */
export function planAgain(receipt: StoredReceipt, devicesMax: number, given: GivenParameters): DownloadPlan {
  const { id, resume } = receipt
  refuseWithHoles(receipt)
  const { filterAddresses } = readParameters({ filterAddresses: DOWNLOAD_PARAMETERS.filterAddresses }, given)
  const asked = queryAgain(resume, filterAddresses)
  if (asked.compression !== 'none') {
    throw badParameter(
      'Resume',
      `cannot resume request ${id}: its body was compressed; request it again with Compression=none`,
    )
  }
  return planDownload(asked, resume.devices, devicesMax)
}

/**
 * A device that was missing and is available again would be in the rest of the file but not in what came before, and
 * the file would look complete.
 */
function refuseWithHoles({ id, status, error, resume, devices }: StoredReceipt): void {
  if (resume.onError !== 'partial' || resume.devices.length === 1) return
  const lacking = devices.filter(({ missing }) => missing !== null).map(({ device }) => device)
  // A receipt is some seconds old until it is final.
  const isLastWord = status !== 'streaming' && error?.code !== 'replica-lost'
  if (isLastWord && lacking.length === 0) return
  const what =
    lacking.length === 0
      ? 'may have continued without a device'
      : `continued without packets of ${listText(lacking)}`
  throw badParameter(
    'Resume',
    `names request ${id}, which ${what} (OnError=partial), so it cannot be resumed; request it again`,
  )
}

/** The options of the first request that affect the body; the others are taken from the new one. */
export function optionsAgain({ resume }: StoredReceipt, options: GatewayOptions): GatewayOptions {
  const { onError, align } = resume
  return { ...options, onError, align }
}

const NOTHING = new Uint8Array(0)

/**
 * `offsetBytes` is the size of the client's growing file. Without it the receipt must know how much the client got:
 * the answer is then a separate file, starting at the first packet (in pcapng: block) that did not arrive completely.
 * Fails with bad-parameter, which says what to do.
 */
export function resumedRequest(
  receipt: StoredReceipt,
  { format }: Pick<BoundedQuery, 'format'>,
  offsetBytes: bigint | undefined,
): ResumedRequest {
  const { id, resume } = receipt
  const places = resume.places ?? undefined
  const [startBytes, headerBytes] = [Number(resume.startBytes), resume.headerBytes]
  const endBytes = startBytes + Math.max(0, Number(receipt.bytes) - headerBytes)
  if (offsetBytes === undefined) {
    refuseUnknownEnd(receipt)
    // How much of that is whole blocks shows when they are read again.
    if (format === 'pcapng') return { id, bytes: endBytes, places, first: NOTHING, isOwnFile: true }
    // A client without a complete header has nothing of the body.
    const bytes = Math.min(endBytes, Number(places?.wholeBytes ?? 0))
    const isBegun = places !== undefined && bytes >= PCAP_HEADER_BYTES
    if (!isBegun) return { id, bytes: 0, places, first: NOTHING }
    return { id, bytes, places, first: Buffer.from(places.header, 'hex') }
  }
  // A file with its own header is that much longer than the part of the body that it holds.
  const shift = headerBytes === 0 ? 0 : startBytes - headerBytes
  refuseBadOffset(receipt, offsetBytes, BigInt(endBytes - shift))
  return { id, bytes: Number(offsetBytes) + shift, places, first: NOTHING }
}

/**
 * Rejects a download that was not cut by us, or was cut by a reset: it is unknown whether its client has everything
 * that was written.
 */
function refuseUnknownEnd({ status, error, resume }: StoredReceipt): void {
  const isRefused = status === 'failed' && error?.code !== 'replica-lost' && resume.places === null
  if (isRefused || resume.isHanded) return
  throw badParameter(
    'Resume',
    'also needs Offset=<size of your file in bytes>: only the client knows how much of this download arrived',
  )
}

function refuseBadOffset(receipt: StoredReceipt, offsetBytes: bigint, fileBytes: bigint): void {
  const { resumedId, resume } = receipt
  const { headerBytes } = resume
  if (offsetBytes < BigInt(headerBytes))
    throw badParameter(
      'Offset',
      `must be at least ${headerBytes}, the header of the file, but is ${offsetBytes}; get the file again with Resume=${resumedId}`,
    )
  // It is not known for sure how far a gateway had got when it died.
  const known = receipt.status !== 'streaming' && receipt.error?.code !== 'replica-lost'
  if (!known || offsetBytes <= fileBytes) return
  throw badParameter(
    'Offset',
    `is ${offsetBytes}, but only ${fileBytes} bytes of packets were sent; the rest of your file only marks the cut: truncate -s ${fileBytes} <your file>, then Offset=${fileBytes}`,
  )
}
