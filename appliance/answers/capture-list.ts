/** /stream/list: all captures, newest first. */
import { LIST_PARAMETERS } from '../../src/shared/contract/device-parameters.ts'
import { CAPFLEET_LIST_PARAMETERS } from '../../src/shared/contract/headers.ts'
import { takeParameters } from '../../src/shared/contract/request-parameters.ts'
import { CAPTURE_COLUMNS, csvLine } from '../../src/shared/query/capture-csv.ts'
import type { ParameterValues } from '../../src/shared/query/query-parameters.ts'
import { type ListTimes, readListTimes } from '../../src/shared/query/time/list-times.ts'
import { type ApplianceContext, type ApplianceParts, nowNs } from '../appliance-parts.ts'
import { baseNameOf, type ListPart } from '../store/capture-catalogue.ts'
import { isDamaged, type StoredCapture, validPercent } from '../store/stored-capture.ts'
import { toExactJson } from '../system-status/exact-json.ts'

/** Lists the parameters that select captures here, so that a gateway need not guess whether a list is partial. */
const KNOWN_PARAMETERS = Object.values(LIST_PARAMETERS)
  .map(({ name }) => name)
  .join(', ')

/**
 * `Limit` and `After` (the name of the last capture of the previous page) page through the list; `StreamName`, `From`
 * and `To` (half-open) select captures of that name, and those that overlap that range; `Format=csv` returns
 * a table.
 */
export async function listCaptures(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const { after, format, from, to, ...choice } = takeParameters(ctx, LIST_PARAMETERS)
  const { fromNs, toNs, timeZone } = readListTimes(
    { from, to },
    { zone: parts.config.timeZone, nowNs: nowNs() },
  )
  const part =
    after === undefined
      ? { before: 0, captures: await parts.catalogue.list() }
      : await parts.catalogue.listAfter(after)
  const items = chosenItems(part, { ...choice, fromNs, toNs })
  if (timeZone !== undefined) ctx.set('Capfleet-Time-Zone', timeZone)
  ctx.set('Cache-Control', 'no-store')
  ctx.set(CAPFLEET_LIST_PARAMETERS.name, KNOWN_PARAMETERS)
  if (format === 'csv') {
    ctx.type = 'text/csv'
    ctx.body = formatCsv(items)
    return
  }
  ctx.type = 'json'
  ctx.body = toExactJson({ Path: '/capture/', StreamList: true, List: items })
}

type Choice = Pick<ParameterValues<typeof LIST_PARAMETERS>, 'captureName' | 'limit'> &
  Pick<ListTimes, 'fromNs' | 'toNs'>

/** The id of an item is its index among all captures, whichever of them are selected. */
function chosenItems(
  { before, captures }: ListPart,
  { captureName, fromNs, toNs, limit = captures.length }: Choice,
): readonly ListItem[] {
  const isNamed = namedBy(captureName, captures)
  const items: ListItem[] = []
  for (const [index, capture] of captures.entries()) {
    if (items.length === limit) break
    if (isNamed(capture) && reachesInto(capture, fromNs, toNs)) items.push(listItem(capture, before + index))
  }
  return items
}

/** A full name means that capture alone; a name that no capture has is a base name. */
function namedBy(name: string | undefined, captures: readonly StoredCapture[]) {
  if (name === undefined) return () => true
  const isFull = captures.some((capture) => capture.name === name)
  return (capture: StoredCapture) => (isFull ? capture.name : baseNameOf(capture)) === name
}

/** A capture without packets has no time: it is only listed if no range is given. */
function reachesInto({ startNs, endNs }: StoredCapture, fromNs?: bigint, toNs?: bigint): boolean {
  return (fromNs === undefined || endNs > fromNs) && (toNs === undefined || startNs < toNs)
}

type ListItem = Readonly<Record<string, string | number | bigint | boolean>>

/** Links are relative to the device's base address, as everywhere in the API. */
function listItem(capture: StoredCapture, index: number): ListItem {
  const { name } = capture
  return {
    id: String(index),
    Path: name,
    PCAP: `/api/v1/pcap/single?StreamName=${name}&`,
    Del: `/pcap/del?StreamName=${name}&`,
    Link: `/stream/ssize?StreamName=${name}&StreamView=split_1GB&`,
    Date: capture.startNs,
    Size: Number(capture.bytes),
    IsActive: capture.state === 'active',
    Type: capture.type,
    Desc: capture.description,
    StreamName: name,
    StartTS: String(capture.startNs),
    EndTS: String(capture.endNs),
    PacketCnt: String(capture.packets),
    ByteCnt: String(capture.bytes),
    State: stateOf(capture),
    ValidPct: validPercent(capture),
  }
}

/** Damage takes precedence: anyone who lists captures must see it, even for a running one. */
function stateOf(capture: StoredCapture): string {
  const { state, removed } = capture
  if (isDamaged(capture)) return 'damaged'
  return removed === undefined || state === 'active' ? state : 'trimmed'
}

function formatCsv(items: readonly ListItem[]): string {
  const rows = items.map((item) => csvLine(CAPTURE_COLUMNS.map((column) => item[column])))
  return [csvLine(CAPTURE_COLUMNS), ...rows].join('')
}
