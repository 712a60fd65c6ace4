/** What a merge consists of beside its packets, in either format. */
import { formatPcapHeader, type PcapHeader } from '../../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import type { BoundedQuery } from '../../fleet/plan/within-bounds.ts'
import type { FileInterfaces } from '../../pcap/file-interfaces.ts'
import type { BodyResult } from './body.ts'

export interface MergedFile {
  /** The file begins with it. */
  readonly head: Buffer
  /** Of the timestamps that are written. */
  readonly resolution: 'nsec' | 'usec'
  /** What the packets may take. Default: as much as there is. */
  readonly packetsBytesMax: bigint | undefined
  /** Set for pcapng. */
  readonly interfaces?: FileInterfaces
  /** What follows the packets, which took `packetsBytes`. */
  closing?(result: BodyResult, packetsBytes: number): Buffer
}

/** A PCAP with this header; `sliceBytes` is set if packets are sliced here. */
export function pcapFile(
  header: PcapHeader,
  { timeResolution, maxBytes }: BoundedQuery,
  sliceBytes = header.snaplen,
): MergedFile {
  const nanoseconds = header.nanoseconds && timeResolution === 'nsec'
  return {
    head: formatPcapHeader({ ...header, snaplen: Math.min(header.snaplen, sliceBytes), nanoseconds }),
    resolution: nanoseconds ? 'nsec' : 'usec',
    packetsBytesMax: maxBytes === undefined ? undefined : maxBytes - BigInt(PCAP_HEADER_BYTES),
  }
}
