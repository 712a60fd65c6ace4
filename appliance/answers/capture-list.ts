/** /stream/list: all captures, newest first. */
import { LIST_PARAMETERS } from '../../src/contract/device-parameters.ts'
import { CAPFLEET_LIST_PARAMETERS } from '../../src/contract/headers.ts'
import { takeParameters } from '../../src/contract/request-parameters.ts'
import { CAPTURE_COLUMNS, csvLine } from '../../src/query/capture-csv.ts'
import type { ParameterValues } from '../../src/query/query-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { baseNameOf, type ListPart } from '../store/capture-catalogue.ts'
import type { CaptureRecord } from '../store/capture-record.ts'
import { validPercent } from '../store/trimmed-record.ts'
import { toExactJson } from '../system-status/exact-json.ts'

/** Names the parameters that choose captures here, so that a gateway need not guess whether a list is cut. */
const KNOWN_PARAMETERS = Object.values(LIST_PARAMETERS)
  .map(({ name }) => name)
  .join(', ')

/**
 * `Limit` and `After` (the name of the last capture of the page before) page through the list; `StreamName`, `From` and `To`
 * (epoch ns, half-open) keep captures of that name, and those that reach into that range; `Format=csv` answers a table.
 */
export async function listCaptures(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const { after, format, ...choice } = takeParameters(ctx, LIST_PARAMETERS)
  const part =
    after === undefined
      ? { before: 0, records: await parts.catalogue.list() }
      : await parts.catalogue.listBehind(after)
  const items = chosenItems(part, choice)
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

type Choice = Omit<ParameterValues<typeof LIST_PARAMETERS>, 'after' | 'format'>

/** The id of an item is its place among all captures, whichever of them are chosen. */
function chosenItems(
  { before, records }: ListPart,
  { captureName, fromNs, toNs, limit = records.length }: Choice,
): readonly ListItem[] {
  const isNamed = namedBy(captureName, records)
  const items: ListItem[] = []
  for (const [index, record] of records.entries()) {
    if (items.length === limit) break
    if (isNamed(record) && reachesInto(record, fromNs, toNs)) items.push(listItem(record, before + index))
  }
  return items
}

/** A full name means its capture alone; a name that no capture has is a base name. */
function namedBy(name: string | undefined, records: readonly CaptureRecord[]) {
  if (name === undefined) return () => true
  const isFull = records.some((record) => record.name === name)
  return (record: CaptureRecord) => (isFull ? record.name : baseNameOf(record)) === name
}

/** A capture without packets is at no time: it is listed where no range is asked for. */
function reachesInto({ startNs, endNs }: CaptureRecord, fromNs?: bigint, toNs?: bigint): boolean {
  return (fromNs === undefined || endNs > fromNs) && (toNs === undefined || startNs < toNs)
}

type ListItem = Readonly<Record<string, string | number | bigint | boolean>>

/** Links are relative to the device's base address, as everywhere in the API. */
function listItem(record: CaptureRecord, index: number): ListItem {
  const { name } = record
  return {
    id: String(index),
    Path: name,
    PCAP: `/api/v1/pcap/single?StreamName=${name}&`,
    Del: `/pcap/del?StreamName=${name}&`,
    Link: `/stream/ssize?StreamName=${name}&StreamView=split_1GB&`,
    Date: record.startNs,
    Size: Number(record.bytes),
    IsActive: record.state === 'active',
    Type: record.type,
    Desc: record.description,
    StreamName: name,
    StartTS: String(record.startNs),
    EndTS: String(record.endNs),
    PacketCnt: String(record.packets),
    ByteCnt: String(record.bytes),
    State: record.removed === undefined || record.state === 'active' ? record.state : 'trimmed',
    ValidPct: validPercent(record),
  }
}

function formatCsv(items: readonly ListItem[]): string {
  const rows = items.map((item) => csvLine(CAPTURE_COLUMNS.map((column) => item[column])))
  return [csvLine(CAPTURE_COLUMNS), ...rows].join('')
}
