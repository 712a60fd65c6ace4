/** What a download's query string says to the gateway alone: none of it reaches a device. */
import { badParameter, QueryParameters, quote } from './query-parameters.ts'

export interface GatewayOptions {
  /** partial: a merge goes on without a device that cannot be read any more. */
  readonly onError: 'fail' | 'partial'
  /** A merge drops a packet that another device had within so long before. */
  readonly dedupNs: bigint | undefined
  /** A merge subtracts each device's clock offset from its timestamps. */
  readonly align: boolean
  /** The SHA-256 of the body goes into the receipt and the trailers. */
  readonly digest: boolean
  /** Becomes an export instead of waiting. */
  readonly queueJob: boolean
  /** Id of the request that this one continues. */
  readonly resumeId: string | undefined
  /** Bytes of that request's body that the client has. */
  readonly offsetBytes: bigint | undefined
}

/** For the parser of the query itself, which must know them to let them pass. */
export const GATEWAY_PARAMETERS: readonly string[] = [
  'OnError',
  'Dedup',
  'Align',
  'Digest',
  'Queue',
  'Resume',
  'Offset',
]

/** Longer than any network delays a packet; keeps what a merge must remember small. */
const DEDUP_MAX_NS = 10_000_000_000n
const OFFSET_MAX_BYTES = 2n ** 63n - 1n
const REQUEST_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** `raw` is the query string without "?". Fails with bad-parameter. */
export function parseGatewayOptions(raw: string): GatewayOptions {
  const parameters = new QueryParameters(raw)
  const resumeId = takeRequestId(parameters)
  const offsetBytes = parameters.takeInteger('Offset', 0n, OFFSET_MAX_BYTES)
  if (offsetBytes !== undefined && resumeId === undefined) {
    throw badParameter('Offset', 'goes with Resume=<request id>; add it, or leave Offset out')
  }
  return {
    onError: parameters.takeChoice('OnError', ['fail', 'partial']) ?? 'fail',
    dedupNs: parameters.takeInteger('Dedup', 1n, DEDUP_MAX_NS),
    align: parameters.takeSwitch('Align') ?? false,
    digest: parameters.takeChoice('Digest', ['sha256']) !== undefined,
    queueJob: parameters.takeChoice('Queue', ['job']) !== undefined,
    resumeId,
    offsetBytes,
  }
}

function takeRequestId(parameters: QueryParameters): string | undefined {
  const id = parameters.take('Resume') || undefined
  if (id === undefined || REQUEST_ID.test(id)) return id
  throw badParameter('Resume', `must be the Capfleet-Request-Id of the download, got ${quote(id)}`)
}
