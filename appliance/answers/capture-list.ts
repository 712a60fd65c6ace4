/** /stream/list: all captures, newest first. */
import { LIST_PARAMETERS } from '../../src/contract/device-parameters.ts'
import { takeParameters } from '../../src/contract/request-parameters.ts'
import { CAPTURE_COLUMNS, csvLine } from '../../src/query/capture-csv.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { isDamaged, type StoredCapture, validPercent } from '../store/stored-capture.ts'
import { toExactJson } from '../system-status/exact-json.ts'

/**
 * `Limit` and `After` (the name of the last capture of the page before) page through the list; `From` and `To` (epoch ns, half-open)
 * keep captures that reach into that range; `Format=csv` answers a table.
 */
export async function listCaptures(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const { limit, after, fromNs, toNs, format } = takeParameters(ctx, LIST_PARAMETERS)
  const { before, captures } =
    after === undefined
      ? { before: 0, captures: await parts.catalogue.list() }
      : await parts.catalogue.listAfter(after)
  const items = captures
    .filter((capture) => reachesInto(capture, fromNs, toNs))
    .slice(0, limit)
    .map((capture, index) => listItem(capture, before + index))
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

/** Damage first: whoever lists captures must see it, also of one that goes on. */
function stateOf(capture: StoredCapture): string {
  const { state, removed } = capture
  if (isDamaged(capture)) return 'damaged'
  return removed === undefined || state === 'active' ? state : 'trimmed'
}

function formatCsv(items: readonly ListItem[]): string {
  const rows = items.map((item) => csvLine(CAPTURE_COLUMNS.map((column) => item[column])))
  return [csvLine(CAPTURE_COLUMNS), ...rows].join('')
}
