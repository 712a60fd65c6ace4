/** `capfleet get --seen`: the packets of addresses, from the devices where these were seen, and from no longer range. */
import { listText } from '../../../shared/base/list-text.ts'
import { SEEN_PARAMETERS, SEEN_RANGE } from '../../../shared/contract/seen-parameters.ts'
import { DOWNLOAD_PARAMETERS } from '../../../shared/query/download/download-parameters.ts'
import { FLEET_PARAMETERS } from '../../../shared/query/download/gateway-options.ts'
import { addressListType } from '../../../shared/query/filter/address-list.ts'
import { ClientFailure, usageFailure } from '../../client-failure.ts'
import { type DownloadTarget, downloadTarget, type FoundBy } from '../../download-target.ts'
import { type FleetSeenEnd, incompleteText, type SeenAt, seenLines } from '../../fleet-seen.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { shownNs } from '../common/list-output.ts'

export interface SeenDownload {
  readonly target: DownloadTarget & { readonly found: FoundBy }
  /** Which packets of the range no longer exist. */
  readonly removed: readonly string[]
}

const DEVICE = FLEET_PARAMETERS.devices.name
const RANGE_NAMES: ReadonlySet<string> = new Set(Object.values(SEEN_RANGE).map(({ name }) => name))

export interface SeenOrder {
  readonly addresses: readonly string[]
  readonly query: QueryPairs
}

/** What tells one download of a search from another. */
export function seenSearch({ addresses, query }: SeenOrder): QueryPairs {
  return [[SEEN_PARAMETERS.addresses.name, addresses.join(',')], ...query]
}

/**
 * `query` has the range and devices to search, and what else the download takes. Fails with a ClientFailure, also if
 * the addresses were not seen, or if a device did not answer and OnError=partial is not in the query.
 */
export async function seenDownload(
  client: GatewayClient,
  order: SeenOrder,
  signal: AbortSignal,
): Promise<SeenDownload> {
  const { addresses, query } = order
  const list = addressList(addresses, query)
  const asked = query.filter(([name]) => RANGE_NAMES.has(name) || name === DEVICE)
  const search: QueryPairs = [[SEEN_PARAMETERS.addresses.name, list], ...asked]
  const { found, incomplete, removed } = await seenBy(client, search, signal)
  const isPartial = query.some(([name, value]) => name === 'OnError' && value === 'partial')
  if (incomplete !== undefined && !isPartial)
    throw new ClientFailure(
      'device',
      `${incomplete}; --on-error partial downloads what was seen on the other devices`,
      { code: 'incomplete' },
    )
  if (found.length === 0)
    throw new ClientFailure(
      'not-found',
      listText(
        ['not seen in this range', ...(incomplete === undefined ? [] : [incomplete]), ...removed],
        '; ',
      ),
      {
        code: 'not-seen',
      },
    )
  const rest = query.filter(([name]) => !RANGE_NAMES.has(name) && name !== DEVICE)
  const target = downloadTarget(undefined, [
    [DEVICE, [...new Set(found.map(({ device }) => device))].toSorted().join(',')],
    ...rangeOf(found),
    [DOWNLOAD_PARAMETERS.filterAddresses.name, list],
    ...rest,
  ])
  return { target: { ...target, found: { search: seenSearch(order), incomplete } }, removed }
}

function addressList(addresses: readonly string[], query: QueryPairs): string {
  const has = (name: string) => query.some(([other]) => other === name)
  if (has('Start') || has('Stop') || !has('TSBegin'))
    throw usageFailure('--seen searches a time range of devices: --last 30d, or --begin and --end')
  if (has(DOWNLOAD_PARAMETERS.filterAddresses.name))
    throw usageFailure('--seen has the addresses; leave out --addresses, or leave out --seen')
  try {
    return addressListType().read(addresses.join('\n'), '--seen', {}) ?? ''
  } catch (error) {
    throw usageFailure((error as Error).message)
  }
}

interface Seen extends Pick<SeenDownload, 'removed'>, Pick<FoundBy, 'incomplete'> {
  readonly found: readonly SeenAt[]
}

async function seenBy(client: GatewayClient, query: QueryPairs, signal: AbortSignal): Promise<Seen> {
  try {
    return await searchAll(client, query, signal)
  } catch (error) {
    // Callers with a filter are told only what was counted.
    const isFiltered =
      error instanceof ClientFailure &&
      error.code === 'bad-parameter' &&
      error.facts.param === SEEN_PARAMETERS.verify.name
    if (!isFiltered) throw error
    return await searchAll(client, [...query, [SEEN_PARAMETERS.verify.name, '1']], signal)
  }
}

async function searchAll(client: GatewayClient, query: QueryPairs, signal: AbortSignal): Promise<Seen> {
  const found: SeenAt[] = []
  let [incomplete, removed]: [string | undefined, readonly string[]] = [undefined, []]
  for await (const { line } of seenLines(client, query, signal)) {
    if ('end' in line) [incomplete, removed] = [missingText(line), removedTexts(line)]
    else if ('address' in line) found.push(line)
  }
  return { found, incomplete, removed }
}

/** Includes packets that cannot be searched: a download of them with this filter would be refused. */
function missingText(end: FleetSeenEnd): string | undefined {
  const reasons = [
    incompleteText(end),
    ...end.otherLinkTypes.map(
      ({ device, linkTypes }) =>
        `${device} has packets of link type ${linkTypes.join(', ')}, which have no addresses that are understood`,
    ),
  ].filter((reason) => reason !== undefined)
  return reasons.length === 0 ? undefined : listText(reasons, '; ')
}

function removedTexts({ agedOut }: FleetSeenEnd): readonly string[] {
  return agedOut.map(
    ({ device, beforeNs }) => `${device}: packets before ${shownNs(beforeNs)} have been removed`,
  )
}

/** The shortest range that has all packets and all times in which there may be more. */
function rangeOf(found: readonly SeenAt[]): QueryPairs {
  const begins: bigint[] = []
  const ends: bigint[] = []
  for (const { firstNs, lastNs, spans } of found) {
    if (firstNs !== undefined) begins.push(BigInt(firstNs))
    if (lastNs !== undefined) ends.push(BigInt(lastNs) + 1n)
    for (const { fromNs, toNs } of spans) {
      begins.push(BigInt(fromNs))
      ends.push(BigInt(toNs))
    }
  }
  const beginNs = begins.reduce((least, one) => (one < least ? one : least))
  const endNs = ends.reduce((most, one) => (one > most ? one : most))
  return [
    ['TSBegin', String(beginNs)],
    ['TSEnd', String(endNs)],
    ['TSUnit', 'nanos'],
  ]
}
