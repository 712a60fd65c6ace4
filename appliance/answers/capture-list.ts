/** /stream/list: all captures, newest first. */
import { LIST_PARAMETERS } from '../../src/contract/device-parameters.ts'
import { takeParameters } from '../../src/contract/request-parameters.ts'
import { CAPTURE_COLUMNS, csvLine } from '../../src/query/capture-csv.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import type { CaptureRecord } from '../store/capture-record.ts'
import { validPercent } from '../store/trimmed-record.ts'
import { toExactJson } from '../system-status/exact-json.ts'

/**
 * `Limit` and `After` (the name of the last capture of the page before) page through the list; `From` and `To` (epoch ns, half-open)
 * keep captures that reach into that range; `Format=csv` answers a table.
 */
export async function listCaptures(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const { limit, after, fromNs, toNs, format } = takeParameters(ctx, LIST_PARAMETERS)
  const { before, records } =
    after === undefined
      ? { before: 0, records: await parts.catalogue.list() }
      : await parts.catalogue.listBehind(after)
  const items = records
    .filter((record) => reachesInto(record, fromNs, toNs))
    .slice(0, limit)
    .map((record, index) => listItem(record, before + index))
  ctx.set('Cache-Control', 'no-store')
  if (format === 'csv') {
    ctx.type = 'text/csv'
    ctx.body = formatCsv(items)
    return
  }
  ctx.type = 'json'
  ctx.body = toExactJson({ Path: '/capture/', StreamList: true, List: items })
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
