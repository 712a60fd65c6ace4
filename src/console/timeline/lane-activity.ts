/** What the devices captured when, from the gateway, without reading packets; kept while other parts are requested. */
import { answered, gateway, Problem, type Schemas } from '../base/ask-gateway.ts'
import type { DeviceFailures } from '../base/devices.ts'
import { TEXTS } from '../texts.ts'
import { instantAt, type TimeView } from './time-view.ts'

type Told = Exclude<Schemas['FleetActivity']['devices'][number], { error: unknown }>

/** A span of time, in nanoseconds as text. */
export type Stretch = Told['gaps'][number]

/** One device's part of an answer, with the time that it covers. */
export interface LaneActivity extends Told {
  readonly view: TimeView
  readonly bucketNs: bigint
}

/** The latest answers by device. */
export type ActivityCache = Map<string, LaneActivity>

/** The smallest width that an eye can distinguish. */
const PIXELS_PER_BUCKET = 2
const BUCKETS_MAX = 2_000

/** Requested beyond what is shown, so that dragging sideways or zooming out finds data. */
const MARGIN = 0.5

export interface ActivityAsk {
  readonly view: TimeView
  readonly devices: readonly string[]
  readonly widthPx: number
  /** Whether the caller may only have packets that pass a filter: activity counts all, and is rejected. */
  readonly isFiltered: boolean
}

/** Changes when different data must be requested. */
export function activityKey({ view, devices, widthPx }: Omit<ActivityAsk, 'isFiltered'>): string | undefined {
  if (devices.length === 0 || widthPx === 0) return undefined
  return `${view.fromNs} ${view.toNs} ${widthPx} ${devices.join(',')}`
}

/** Stores the answers in the cache. Devices that did not answer keep their previous data there. */
export async function askActivity(
  { view, devices, widthPx, isFiltered }: ActivityAsk,
  cache: ActivityCache,
  signal: AbortSignal,
): Promise<DeviceFailures> {
  if (isFiltered) throw new Problem({ code: 'out-of-bounds', status: 0, detail: TEXTS.timeline.filtered })
  const buckets = Math.min(BUCKETS_MAX, Math.ceil((widthPx * (1 + 2 * MARGIN)) / PIXELS_PER_BUCKET))
  const fromNs = instantAt(view, -MARGIN)
  const query = {
    TSBegin: String(fromNs < 0n ? 0n : fromNs),
    TSEnd: String(instantAt(view, 1 + MARGIN)),
    TSUnit: 'nanos' as const,
    Buckets: buckets,
    Device: devices.join(','),
  }
  const answer = await answered(gateway.GET('/v1/activity', { params: { query }, signal }))
  const covered = { fromNs: BigInt(answer.fromNs), toNs: BigInt(answer.toNs) }
  for (const lane of answer.devices)
    if (!('error' in lane))
      cache.set(lane.device, { ...lane, view: covered, bucketNs: BigInt(answer.bucketNs) })
  return new Map(
    answer.devices.flatMap((lane) => ('error' in lane ? [[lane.device, lane.error] as const] : [])),
  )
}
