/** How large a pcapng file is beside its packets, known before it is produced. */
import { badParameter } from '../../src/shared/query/query-parameters.ts'
import type { ApplianceParts } from '../appliance-parts.ts'
import { PcapngBody } from './pcapng-body.ts'
import type { PreparedDownload, PrepareRequest } from './prepare-download.ts'

/**
 * At most this many bytes; undefined: it is a PCAP. Fails with bad-parameter if MaxBytes has no room for them, so that
 * no file exceeds it.
 */
export function pcapngOtherBytes(
  { config, serial }: Pick<ApplianceParts, 'config' | 'serial'>,
  prepared: PreparedDownload,
  { isForced }: Pick<PrepareRequest, 'isForced'>,
): bigint | undefined {
  const { query } = prepared
  if (query.format !== 'pcapng') return undefined
  const body = new PcapngBody({ device: { ...config, serial }, query, isForced })
  const bytes = BigInt(body.partsFor(prepared).otherBytes)
  if (query.maxBytes !== undefined && query.maxBytes < bytes)
    throw badParameter(
      'MaxBytes',
      `must be at least ${bytes} for this file in pcapng, which are its head, its interfaces and its end without any packet, got ${query.maxBytes}; raise it, or leave out Format`,
    )
  return bytes
}
