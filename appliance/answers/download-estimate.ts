/**
 * /api/v1/pcap/estimate: what a download with the same query would deliver, from the indexes and without a slot;
 * blocks are only read where the range begins or ends inside a millisecond. Makes every check of the download and
 * compiles its filters, so it also serves to check a filter.
 */
import { countPackets } from '../../native/addon.ts'
import { givenParameters } from '../../src/shared/contract/request-parameters.ts'
import { PCAP_HEADER_BYTES, RECORD_HEADER_BYTES } from '../../src/shared/pcap/pcap-sizes.ts'
import type { DownloadQuery } from '../../src/shared/query/download/download-query.ts'
import { estimatedKind, parseDownloadQuery } from '../../src/shared/query/download/parse-download-query.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { withoutLost } from '../downloads/lost-segments.ts'
import { onHeld } from '../downloads/on-held.ts'
import { pcapngOtherBytes } from '../downloads/pcapng-size.ts'
import { parseContextOf, prepareDownload } from '../downloads/prepare-download.ts'
import { damagedSegments } from '../downloads/select-streams.ts'
import { withClientSignal } from '../request/client-signal.ts'
import { callerOf, hasForcedFilter } from '../request/labelled-caller.ts'

/** Fails as the download would, except for the lack of a slot. */
export async function estimateDownload(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  await withClientSignal(ctx, async (signal) => {
    const given = givenParameters(ctx)
    const kind = estimatedKind(given)
    const query = parseDownloadQuery(kind, given, parseContextOf(parts))
    const request = { caller: callerOf(ctx), isForced: hasForcedFilter(ctx), signal }
    const boundariesNs = [query.beginNs, query.endNs]
    const { selection, counted, otherBytes } = await onHeld(
      () => prepareDownload(parts, query, request),
      async (found) => {
        const [count] = await countPackets({ streams: found.selection.streams, boundariesNs, signal })
        return {
          selection: found.selection,
          counted: count,
          otherBytes: pcapngOtherBytes(parts, found, request),
        }
      },
      withoutLost,
    )
    if (query.timeZone !== undefined) ctx.set('Capfleet-Time-Zone', query.timeZone)
    ctx.set('Cache-Control', 'no-store')
    ctx.body = {
      Kind: kind,
      ...boundedBy(query, counted ?? { packets: 0n, bytes: 0n }, otherBytes),
      Exact: isExact(query) && damagedSegments(selection) === 0,
      BeginNs: String(query.beginNs),
      EndNs: String(query.endNs),
      Captures: selection.captures,
      LinkType: selection.linkType,
      Ignored: query.ignored,
    }
  })
}

interface Amount {
  readonly packets: bigint
  readonly bytes: bigint
}

/**
 * Whole packets of the range; with limits in the query, at most what these allow. `otherBytes`: what the file has beside
 * packets in pcapng.
 */
function boundedBy(
  query: DownloadQuery,
  counted: Amount,
  otherBytes: bigint | undefined,
): { Packets: string; Bytes: string } {
  const packets = least(counted.packets, query.maxPackets)
  const sliced =
    query.sliceBytes === undefined
      ? undefined
      : packets * (BigInt(RECORD_HEADER_BYTES) + BigInt(query.sliceBytes))
  const records = least(counted.bytes, sliced)
  const whole =
    otherBytes === undefined
      ? BigInt(PCAP_HEADER_BYTES) + records
      : otherBytes + records + packets * PCAPNG_PACKET_BYTES
  const bytes = least(whole, query.maxBytes)
  return { Packets: String(packets), Bytes: String(bytes) }
}

/** What a packet has in pcapng at most beside its PCAP record: 32 instead of 16 bytes, and padding. */
const PCAPNG_PACKET_BYTES = 19n

function least(value: bigint, limit: bigint | undefined): bigint {
  return limit !== undefined && limit < value ? limit : value
}

/** Whether the figures are exactly what will be delivered, before compression; otherwise they are maximums. */
function isExact(query: DownloadQuery): boolean {
  return (
    !query.follow &&
    query.format === 'pcap' &&
    query.filterBpf === undefined &&
    query.filterAddresses === undefined &&
    query.filterRegex === undefined &&
    query.frameFilter.length === 0 &&
    query.tsMaxNs === undefined &&
    query.sliceBytes === undefined &&
    query.dedupNs === undefined &&
    query.strip.length === 0 &&
    query.maxBytes === undefined &&
    query.maxPackets === undefined
  )
}
