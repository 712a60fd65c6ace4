/** From a prepared download to the engine that reads it. */
import { Download } from '../../native/addon.ts'
import type { DownloadOptions } from '../../native/download-options.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { withoutLost } from './lost-segments.ts'
import { onHeld } from './on-held.ts'
import type { PcapngBody } from './pcapng-body.ts'
import { type PreparedDownload, type PrepareRequest, prepareDownload } from './prepare-download.ts'
import type { Reader } from './stream-limit.ts'

/**
 * Works on what was prepared. Prepares again if a segment was removed since, for instance during a long wait for a slot.
 */
export async function onPrepared<Result>(
  parts: ApplianceParts,
  prepared: PreparedDownload,
  request: PrepareRequest,
  work: (found: PreparedDownload) => Promise<Result>,
): Promise<Result> {
  let next: PreparedDownload | undefined = prepared
  const find = async (): Promise<PreparedDownload> => {
    const found = next ?? (await prepareDownload(parts, prepared.query, request))
    next = undefined
    return found
  }
  return await onHeld(find, work, withoutLost)
}

/** `body`: the file in pcapng; default: a PCAP. */
export async function openEngine(
  prepared: PreparedDownload,
  { isForced, signal }: PrepareRequest,
  body?: PcapngBody,
): Promise<Download> {
  const { query, selection, program, addresses, regex, mac48LimitNs } = prepared
  const options: DownloadOptions = {
    streams: selection.streams,
    beginNs: query.beginNs,
    endNs: query.endNs,
    frameFilter: query.frameFilter,
    filter: program,
    filterDecap: query.filterDecap,
    addresses,
    readsAllBlocks: isForced,
    regex,
    timeSource: query.timeSource,
    mac48LimitNs,
    strip: query.strip,
    dedupNs: query.dedupNs,
    dedupBy: query.dedupBy,
    sliceBytes: query.sliceBytes,
    tsMaxNs: query.tsMaxNs,
    maxBytes: query.maxBytes,
    maxPackets: query.maxPackets,
    afterBytes: query.afterBytes,
    timeResolution: query.timeResolution,
    compression: query.compression,
    emptyLinkType: selection.linkType,
    pcapng: body?.partsFor(prepared),
  }
  const download = await Download.open(options, signal)
  body?.opened(download)
  return download
}

/** The user of the slot. `mode` is what the slot is used for. */
export function readerOf(
  { query, selection }: PreparedDownload,
  ctx: ApplianceContext,
  mode: string,
): Reader {
  return {
    mode,
    commandLine: `${ctx.method} ${ctx.originalUrl}`,
    what: query.captureName ?? `${query.beginNs}-${query.endNs} of ${selection.captures.length} captures`,
    captures: selection.captures,
    filter: query.filterBpf,
    sliceBytes: query.sliceBytes,
    user: ctx.state.caller?.name ?? '',
    follows: query.follow,
    startedAt: new Date().toISOString(),
    bytes: 0n,
    totals: undefined,
  }
}
