/**
 * Prepares a download: finds its captures and compiles its filters. Everything that can be wrong with a request is
 * detected here, before a slot is taken.
 */

import type { StreamFiles } from '../../native/download-options.ts'
import { NETWORK_LINK_TYPES } from '../../src/shared/pcap/link-types.ts'
import { downloadFileName } from '../../src/shared/query/download/download-file-name.ts'
import type { DownloadQuery } from '../../src/shared/query/download/download-query.ts'
import type { ParseContext } from '../../src/shared/query/download/parse-download-query.ts'
import { packAddressList } from '../../src/shared/query/filter/address-list.ts'
import { badParameter } from '../../src/shared/query/query-parameters.ts'
import { type ApplianceParts, nowNs } from '../appliance-parts.ts'
import type { CompileRequest } from '../compile/compile-queue.ts'
import type { TimedEvent } from '../store/recorded-time.ts'
import { agedOutBeforeNs } from '../store/removed-spans.ts'
import type { StoredCapture } from '../store/stored-capture.ts'
import { type LostPackets, lostPackets } from './lost-packets.ts'
import { isPortWanted, type StreamSelection, selectStreams, streamsOfAnyTime } from './select-streams.ts'

/** A query that passed all checks. */
export interface PreparedDownload {
  readonly query: DownloadQuery
  readonly selection: StreamSelection
  /** Retention has removed packets of the range older than this; undefined: none. */
  readonly agedOutBeforeNs: bigint | undefined
  /** The full name of the capture that is requested by name. */
  readonly captureName: string | undefined
  readonly fileName: string
  /** FilterBPF, compiled for the selection's link type. */
  readonly program: Uint8Array | undefined
  /** FilterAddresses, as the engine takes it. */
  readonly addresses: Uint8Array | undefined
  /** FilterRE, as a serialized Hyperscan database. */
  readonly regex: Uint8Array | undefined
  /**
   * For vendorA7280_mac48: a source address whose time differs from the NIC's by more than this is an ordinary
   * address.
   */
  readonly mac48LimitNs: bigint
  /**
   * For callers who must not learn when a port had packets that the filter hides: a file in pcapng describes the ports
   * of all these streams, whatever the range. undefined: those of the selection.
   */
  readonly describedStreams?: readonly StreamFiles[] | undefined
  /** With describedStreams: the ports on which the device may record, described as Ethernet unless they hold packets. */
  readonly describedPorts?: readonly number[] | undefined
  /** What a file in pcapng says about missing packets. */
  readonly lost?: LostPackets | undefined
}

const NANOS_PER_MS = 1_000_000n

/** The context in which a query is interpreted on this device, now. */
export function parseContextOf({ config }: ApplianceParts): ParseContext {
  return { zone: config.timeZone, nowNs: nowNs(), timeSourceAliases: config.tsModeAliases, at: 'device' }
}

export interface PrepareRequest extends CompileRequest {
  /** Whether the caller must not learn anything about packets that the filter hides. */
  readonly isForced: boolean
}

/**
 * Fails with unknown-capture, aged-out, mixed-link-type, bad-bpf, bad-regex, bad-parameter (more captures than a
 * legacy path may cover), compiler-busy, store-unavailable, or the signal's reason.
 */
export async function prepareDownload(
  parts: ApplianceParts,
  query: DownloadQuery,
  request: PrepareRequest,
): Promise<PreparedDownload> {
  const { catalogue } = parts
  const { captureName } = query
  const captures = captureName === undefined ? await catalogue.list() : [await catalogue.find(captureName)]
  const agedOut = captureName === undefined ? await catalogue.listAgedOut() : []
  const lostBeforeNs = agedOutBeforeNs(query, { captures, agedOut }, request)
  const options = { query, folderOf: (capture: StoredCapture) => catalogue.folderOf(capture) }
  const selection = selectStreams(captures, options)
  checkCaptureCount(query, selection.captures)
  for (const linkType of selection.linkTypes) refuseUnknownLinkType(query, linkType)
  const [capture] = captures
  const isPcapng = query.format === 'pcapng'
  return {
    query,
    selection,
    agedOutBeforeNs: lostBeforeNs,
    captureName: captureName === undefined ? undefined : capture?.name,
    fileName: downloadFileName(query, { captureName: capture?.name, place: parts.config.deviceName }),
    addresses: query.filterAddresses === undefined ? undefined : packAddressList(query.filterAddresses),
    mac48LimitNs: BigInt(parts.config.downloads.mac48LimitMs) * NANOS_PER_MS,
    ...(isPcapng && request.isForced
      ? {
          describedStreams: streamsOfAnyTime(captures, options),
          describedPorts: mayGrow(query, captures) ? portsToRecord(parts, query) : [],
        }
      : {}),
    // Callers must not learn from it what the filter hides.
    lost:
      isPcapng && !request.isForced
        ? lostPackets(query, { held: { captures, agedOut }, selection, events: resumptions(parts) })
        : undefined,
    ...(await compileFilters(parts, { query, linkType: selection.linkType }, request)),
  }
}

/** Whether a capture of the query is being recorded, or one may begin that is. */
function mayGrow({ captureName }: DownloadQuery, captures: readonly StoredCapture[]): boolean {
  return captureName === undefined || captures.some(({ state }) => state === 'active')
}

function portsToRecord({ config }: ApplianceParts, { frameFilter }: DownloadQuery): readonly number[] {
  return config.capture.ports.map(({ port }) => port).filter((port) => isPortWanted(port, frameFilter))
}

function resumptions({ events }: Pick<ApplianceParts, 'events'>): readonly TimedEvent[] {
  const resumed: TimedEvent[] = []
  for (const { data } of events.kept()) if (data.Kind === 'capture-resumed') resumed.push(data)
  return resumed
}

/** Fails with bad-parameter if the query needs to look into packets of a link type that the engine does not know. */
function refuseUnknownLinkType(query: DownloadQuery, linkType: number): void {
  if (NETWORK_LINK_TYPES.has(linkType)) return
  const only = `packets of link type ${linkType}, only in Ethernet, raw IP and Linux cooked captures`
  if (query.filterAddresses !== undefined)
    throw badParameter('FilterAddresses', `finds no addresses in ${only}; use FilterBPF`)
  if (query.filterBpf !== undefined && query.filterDecap)
    throw badParameter('FilterBPFDecap', `finds no tunnels in ${only}; leave it out`)
  if (query.strip.length > 0) throw badParameter('Strip', `finds no headers in ${only}; leave it out`)
}

/** Leaving out the third capture would silently lose packets. */
function checkCaptureCount({ capturesMax }: DownloadQuery, captures: readonly string[]): void {
  if (capturesMax === undefined || captures.length <= capturesMax) return
  throw badParameter(
    'TSEnd',
    `makes the range span ${captures.length} captures (${captures.slice(0, 5).join(', ')}), but this path supports at most ${capturesMax}; shorten the range or use /api/v1/pcap/timerange`,
  )
}

async function compileFilters(
  { compiler, regexCompiler }: ApplianceParts,
  { query, linkType }: { readonly query: DownloadQuery; readonly linkType: number },
  request: CompileRequest,
): Promise<Pick<PreparedDownload, 'program' | 'regex'>> {
  const { filterBpf, filterRegex } = query
  return {
    program:
      filterBpf === undefined
        ? undefined
        : await compiler.compile({ expression: filterBpf, linkType }, request),
    regex: filterRegex === undefined ? undefined : await regexCompiler.compile(filterRegex, request),
  }
}
