/** Where a download that was cut goes on. */
import { CapfleetError } from '../base/error.ts'
import { PCAP_HEADER_BYTES } from '../pcap/pcap-header.ts'
import { badParameter } from '../query/query-parameters.ts'
import type { Checkpoint, StoredReceipt } from './receipt.ts'
import type { TimeMark } from './time-marks.ts'

export interface ResumePoint {
  /** The request that is continued. */
  readonly id: string
  /** Bytes of the whole body that the client has. */
  readonly bytes: bigint
  /** Begin with a file header and the first record that the client has not whole. */
  readonly asNewFile: boolean
  /** Of what was sent then, and of what follows the mark. */
  readonly checkpoints: readonly Checkpoint[]
  /** From where the devices are asked again; undefined: from the beginning. */
  readonly mark: { readonly bytes: bigint; readonly fromNs: bigint } | undefined
}

/**
 * `offsetBytes` is the size of the client's file; without it the receipt must know how much the
 * client got. Fails with bad-parameter, which says what to do.
 */
export function resumePoint(receipt: StoredReceipt, offsetBytes: bigint | undefined): ResumePoint {
  const { startBytes, headerBytes, checkpoints } = receipt.resume
  if (offsetBytes === undefined) refuseUnknownEnd(receipt)
  // A file with a header of its own is that much longer than the part of the body that it holds.
  const shift = headerBytes === 0 ? 0n : BigInt(startBytes) - BigInt(headerBytes)
  const endBytes = BigInt(startBytes) + BigInt(receipt.bytes) - BigInt(headerBytes)
  if (offsetBytes !== undefined) refuseBadOffset(receipt, offsetBytes, endBytes - shift)
  const bytes = offsetBytes === undefined ? endBytes : offsetBytes + shift
  const mark = receipt.resume.marks.findLast((one) => BigInt(one.bytes) <= bytes)
  return {
    id: receipt.id,
    bytes,
    asNewFile: offsetBytes === undefined,
    checkpoints: mark === undefined ? checkpoints : withHeadOf(mark, checkpoints),
    mark: mark === undefined ? undefined : { bytes: BigInt(mark.bytes), fromNs: BigInt(mark.fromNs) },
  }
}

/** Checkpoints reach back: those near the mark begin before it, where nothing is made again. */
function withHeadOf(
  { bytes, headBytes, crc32 }: TimeMark,
  checkpoints: readonly Checkpoint[],
): readonly Checkpoint[] {
  const head = { bytes: String(BigInt(bytes) + BigInt(headBytes)), overBytes: headBytes, crc32 }
  return [...checkpoints, head].sort((a, b) => (BigInt(a.bytes) < BigInt(b.bytes) ? -1 : 1))
}

/** Only of a download that we cut we know that the client has all that was written. */
function refuseUnknownEnd({ status, error }: StoredReceipt): void {
  const cutHere = status === 'failed' && !['replica-lost', 'client-timeout'].includes(error?.code ?? '')
  if (cutHere) return
  throw badParameter(
    'Resume',
    'needs Offset=<size of your file in bytes> beside it: only the client knows how much of this download arrived',
  )
}

function refuseBadOffset(receipt: StoredReceipt, offsetBytes: bigint, fileBytes: bigint): void {
  if (receipt.resume.headerBytes > 0 && offsetBytes < BigInt(PCAP_HEADER_BYTES)) {
    throw badParameter('Offset', `must be at least ${PCAP_HEADER_BYTES}, the header of the file`)
  }
  // How far a gateway that died had come is not known for sure.
  const known = receipt.status !== 'streaming' && receipt.error?.code !== 'replica-lost'
  if (!known || offsetBytes <= fileBytes) return
  throw badParameter(
    'Offset',
    `is ${offsetBytes}, but only ${fileBytes} bytes of packets were sent; what follows marks the cut: truncate -s ${fileBytes} <your file>, then Offset=${fileBytes}`,
  )
}

/** The device gives other bytes now than it gave then. */
export function bodyChanged(point: ResumePoint): CapfleetError {
  return new CapfleetError(
    'aged-out',
    `the packets that request ${point.id} has delivered are not the same any more: some were overwritten; ask for the rest by TSBegin`,
    { param: 'Resume' },
  )
}
