/**
 * /stream/ssize and /stream/stime: the splits of a capture by size and by time. They are half-open and adjacent, so
 * that together they contain every packet once. They are cut at whole milliseconds, so the indexes provide the counts,
 * and no packet is read.
 */

import { countPackets, type IntervalCount } from '../../native/addon.ts'
import {
  SIZE_SPLIT_PARAMETERS,
  SPLITS_MAX,
  TIME_SPLIT_PARAMETERS,
} from '../../src/shared/contract/device-parameters.ts'
import { takeParameters } from '../../src/shared/contract/request-parameters.ts'
import { badParameter, type ParameterValues } from '../../src/shared/query/query-parameters.ts'
import { SIZE_VIEWS, TIME_VIEWS } from '../../src/shared/query/split-views.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { withLostMarked } from '../downloads/lost-segments.ts'
import { onHeld } from '../downloads/on-held.ts'
import { selectStreams } from '../downloads/select-streams.ts'
import { withClientSignal } from '../request/client-signal.ts'
import { type StoredCapture, validPercent } from '../store/stored-capture.ts'
import { toExactJson } from '../system-status/exact-json.ts'
import { type CutOptions, cutBySize, cutByTime, type SplitInterval } from './split-boundaries.ts'

export async function listSizeSplits(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const asked = takeParameters(ctx, SIZE_SPLIT_PARAMETERS)
  const bytes = SIZE_VIEWS[asked.view]
  await answerSplits(parts, ctx, asked, (capture, options) =>
    cutBySize(capture, { ...options, bytes, folder: parts.catalogue.folderOf(capture) }),
  )
}

export async function listTimeSplits(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const asked = takeParameters(ctx, TIME_SPLIT_PARAMETERS)
  await answerSplits(parts, ctx, asked, async (capture, options) =>
    cutByTime(capture, TIME_VIEWS[asked.view], options),
  )
}

type AskedSplits =
  | ParameterValues<typeof SIZE_SPLIT_PARAMETERS>
  | ParameterValues<typeof TIME_SPLIT_PARAMETERS>

/**
 * `Limit` requests at most that many splits; if there are more, `Next` of the answer is the `After` of the next page:
 * epoch ns before which no further split begins.
 */
async function answerSplits(
  parts: ApplianceParts,
  ctx: ApplianceContext,
  { captureName, view, limit, fromNs }: AskedSplits,
  cut: (capture: StoredCapture, options: CutOptions) => Promise<SplitInterval[]>,
): Promise<void> {
  const most = limit ?? SPLITS_MAX
  await withClientSignal(ctx, async (signal) => {
    const split = async (capture: StoredCapture) => {
      const intervals = await cut(capture, { fromNs, limit: most })
      if (limit === undefined && intervals.length > most) throw tooMany(view)
      const page = intervals.slice(0, most)
      return {
        capture,
        intervals,
        page,
        counts: await countIntervals(parts, capture, { intervals: page, signal }),
      }
    }
    const { catalogue } = parts
    const { capture, intervals, page, counts } = await onHeld(
      () => catalogue.find(captureName),
      split,
      (found) => withLostMarked(found, catalogue.folderOf(found)),
    )
    const next = intervals[most]
    ctx.set('Cache-Control', 'no-store')
    ctx.type = 'json'
    ctx.body = toExactJson({
      Path: `/capture/${capture.name}/${view}`,
      SplitFile: true,
      List: splitItems(capture, page, { counts, zone: parts.config.timeZone }),
      ...(next === undefined ? {} : { Next: String(next.startNs) }),
    })
  })
}

function tooMany(view: string): Error {
  return badParameter(
    'StreamView',
    `${view} gives more than ${SPLITS_MAX} splits; choose a coarser one, or add Limit and continue with After=<Next of the answer>`,
  )
}

/** One count for each interval. What lies between two intervals is counted too, and is zero. */
async function countIntervals(
  parts: ApplianceParts,
  capture: StoredCapture,
  { intervals, signal }: { readonly intervals: readonly SplitInterval[]; readonly signal: AbortSignal },
): Promise<readonly (IntervalCount | undefined)[]> {
  const beginNs = intervals[0]?.startNs
  const endNs = intervals.at(-1)?.stopNs
  if (beginNs === undefined || endNs === undefined) return []
  const boundariesNs = intervals.flatMap(({ startNs, stopNs }) => [startNs, stopNs])
  const { streams } = selectStreams([capture], {
    query: { beginNs, endNs, timeSource: 'nic', frameFilter: [] },
    folderOf: (record) => parts.catalogue.folderOf(record),
  })
  const counts = await countPackets({ streams, boundariesNs, signal })
  return intervals.map((_, index) => counts[2 * index])
}

interface ItemOptions {
  readonly counts: readonly (IntervalCount | undefined)[]
  readonly zone: string
}

/** Intervals without packets are left out. */
function splitItems(
  capture: StoredCapture,
  intervals: readonly SplitInterval[],
  { counts, zone }: ItemOptions,
): Record<string, string | number | bigint>[] {
  const clock = clockOf(zone)
  return intervals
    .map((interval, index) => ({ ...interval, ...(counts[index] ?? { packets: 0n, bytes: 0n }) }))
    .filter(({ packets }) => packets > 0n)
    .map(({ startNs, stopNs, packets, bytes }, index) => ({
      id: String(index),
      Path: splitPath(startNs, clock),
      PCAP: `/pcap/splittime?StreamName=${capture.name}&Start=${startNs}ULL&Stop=${stopNs}ULL&&`,
      StartTS: String(startNs),
      StopTS: String(stopNs),
      Size: Number(bytes),
      ByteCnt: String(bytes),
      PacketCnt: packets,
      PacketCntExact: String(packets),
      Date: startNs,
      Type: capture.type,
      // What the capture lost in this split alone is unknown.
      ValidPct:
        capture.removed !== undefined && startNs < capture.removed.endNs ? validPercent(capture) : 100,
      Desc: capture.description,
    }))
}

function clockOf(zone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    dateStyle: 'short',
    timeStyle: 'medium',
  })
}

/** `YYYYMMDD_HH:MM:SS.mmm.uuu.nnn` in the device's zone. */
function splitPath(ns: bigint, clock: Intl.DateTimeFormat): string {
  const date = clock
    .format(Number(ns / 1_000_000n))
    .replaceAll('-', '')
    .replace(' ', '_')
  const fraction = String(ns % 1_000_000_000n).padStart(9, '0')
  return `${date}.${fraction.slice(0, 3)}.${fraction.slice(3, 6)}.${fraction.slice(6)}`
}
