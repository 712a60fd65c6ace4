/** A device's estimate of what a download would deliver, made from its index alone. */
import { CapfleetError } from '../../../shared/base/error.ts'
import { formatDownloadQuery } from '../../../shared/query/download/format-download-query.ts'
import { ANSWER_BYTES_MAX } from '../../device/device-client.ts'
import { deviceProtocol } from '../../device/device-failure.ts'
import { isForeign } from '../../device/device-kind.ts'
import { type FleetMember, kindOfMember } from '../fleet.ts'
import type { BoundedQuery } from '../plan/within-bounds.ts'

export interface DeviceEstimate {
  readonly packets: bigint
  /** Size of the PCAP, before compression. */
  readonly bytes: bigint
  /** Whether it will be exactly that much; otherwise it is the maximum. */
  readonly exact: boolean
  readonly linkType: number | null
  /** The half-open time range that the estimate covers, or undefined if the device does not report it. */
  readonly beginNs: bigint | undefined
  readonly endNs: bigint | undefined
}

/**
 * Takes no stream. Fails like DeviceClient.getJson, and with not-implemented for a third-party device, which is not
 * asked: its API has no estimates.
 */
export async function estimateDevice(
  member: FleetMember,
  query: BoundedQuery,
  { caller, signal }: { readonly caller: string; readonly signal: AbortSignal },
): Promise<DeviceEstimate> {
  const { device, client, breaker } = member
  if (isForeign(kindOfMember(member)))
    throw new CapfleetError(
      'not-implemented',
      `device ${device.name} is a third-party device, which cannot estimate downloads`,
      { members: { devices: [device.name] } },
    )
  const target = `/api/v1/pcap/estimate?${formatDownloadQuery(query)}`
  const ask = () => client.getJson(target, { bytesMax: ANSWER_BYTES_MAX.estimate, signal, caller })
  return readEstimate(device.name, await breaker.run(ask))
}

/** A device is not trusted. */
function readEstimate(device: string, answer: unknown): DeviceEstimate {
  const { Packets, Bytes, Exact, LinkType, BeginNs, EndNs } = (answer ?? {}) as Record<string, unknown>
  if (!isCount(Packets) || !isCount(Bytes)) throw deviceProtocol(device, 'sent an estimate without counts')
  return {
    packets: BigInt(Packets),
    bytes: BigInt(Bytes),
    exact: Exact === true,
    linkType: typeof LinkType === 'number' ? LinkType : null,
    beginNs: isCount(BeginNs) ? BigInt(BeginNs) : undefined,
    endNs: isCount(EndNs) ? BigInt(EndNs) : undefined,
  }
}

function isCount(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,20}$/.test(value)
}
