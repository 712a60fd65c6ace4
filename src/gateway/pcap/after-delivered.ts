/** Finds the place in a new stream where an earlier stream of the same packets broke off. */
import type { RecordMark } from '../../../native/record-merge.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { StreamHeader } from '../../shared/pcap/pcap-header.ts'
import { type InputOptions, PcapInput } from './pcap-input.ts'

export interface DeliveredEnd {
  /** The file header of the earlier stream. */
  readonly header: StreamHeader
  /** The delivered packets with which the new stream begins. */
  readonly mark: RecordMark
  /** Their timestamp on the device, if all of them have the same. */
  readonly ns: bigint | undefined
  /** See InputOptions. */
  readonly interface?: InputOptions['interface']
}

/** Cause of errors for which retrying the device is useless: it now returns other packets, or cannot continue. */
export const CANNOT_CONTINUE = new Error('the stream cannot be resumed')

/**
 * Opens the new stream, checks that the delivered packets are at its beginning, and resolves to the bytes after them.
 * Throws device-protocol with the cause CANNOT_CONTINUE if they differ: the device has lost or overwritten them since.
 * If it throws, the caller still owns `chunks`.
 */
export async function afterDelivered(
  name: string,
  chunks: AsyncIterator<Uint8Array>,
  end: DeliveredEnd,
): Promise<AsyncIterator<Uint8Array>> {
  const input = await PcapInput.open(name, chunks, { keepsResolution: true, interface: end.interface })
  const { header } = input
  const isSame =
    header.linkType === end.header.linkType &&
    header.nanoseconds === end.header.nanoseconds &&
    header.isBigEndian === end.header.isBigEndian
  if (!isSame) throw changed(name, 'the file header is different')
  const { mark } = end
  const skipped = await input.skip(mark.packets)
  if (skipped.packets < mark.packets) {
    throw changed(name, `it has only ${skipped.packets} of the last ${mark.packets} delivered packets`)
  }
  const { firstNs, lastNs } = input.figures
  const isOtherTime = end.ns !== undefined && (firstNs !== end.ns || lastNs !== end.ns)
  if (isOtherTime) throw changed(name, 'the packets at the last timestamp are gone')
  if (skipped.hash !== mark.hash) throw changed(name, 'the last delivered packets are different')
  const remaining = input.remaining()
  return {
    next: () => remaining.next(),
    // The generator's own return() would only be answered when data arrives.
    return: async () => (await chunks.return?.()) ?? { done: true, value: undefined },
  }
}

function changed(name: string, what: string): CapfleetError {
  return new CapfleetError(
    'device-protocol',
    `${name}: the stream broke off and cannot be resumed: ${what}`,
    { members: { devices: [name] }, cause: CANNOT_CONTINUE },
  )
}
