/** What the devices captured when, as the gateway tells it without reading a packet; kept while other parts are asked for. */
import { answered, gateway, type Schemas } from '../base/ask-gateway.ts'
import { instantAt, type TimeView } from './time-view.ts'

type Told = Exclude<Schemas['FleetActivity']['devices'][number], { error: unknown }>

/** A stretch of time, in nanoseconds as text. */
export type Stretch = Told['gaps'][number]

/** One device's part of an answer, with the time that it covers. */
export interface LaneActivity extends Told {
  readonly view: TimeView
  readonly bucketNs: bigint
}

/** The latest answers by device. */
export type ActivityCache = Map<string, LaneActivity>

/** As many pixels to a bucket as an eye can tell apart. */
const PIXELS_PER_BUCKET = 2
const BUCKETS_MAX = 2_000

/** Beside what is shown, so that a drag to the side or a step out finds something. */
const MARGIN = 0.5

export interface ActivityAsk {
  readonly view: TimeView
  readonly devices: readonly string[]
  readonly widthPx: number
}

/** Changes when something else has to be asked for. */
export function activityKey({ view, devices, widthPx }: ActivityAsk): string | undefined {
  if (devices.length === 0 || widthPx === 0) return undefined
  return `${view.fromNs} ${view.toNs} ${widthPx} ${devices.join(',')}`
}

export async function askActivity(
  { view, devices, widthPx }: ActivityAsk,
  cache: ActivityCache,
  signal: AbortSignal,
): Promise<ActivityCache> {
  const buckets = Math.min(BUCKETS_MAX, Math.ceil((widthPx * (1 + 2 * MARGIN)) / PIXELS_PER_BUCKET))
  const fromNs = instantAt(view, -MARGIN)
  const query = {
    TSBegin: String(fromNs < 0n ? 0n : fromNs),
    TSEnd: String(instantAt(view, 1 + MARGIN)),
    Buckets: buckets,
    Device: devices.join(','),
  }
  const answer = await answered(gateway.GET('/v1/activity', { params: { query }, signal }))
  const covered = { fromNs: BigInt(answer.fromNs), toNs: BigInt(answer.toNs) }
  for (const lane of answer.devices)
    if (!('error' in lane))
      cache.set(lane.device, { ...lane, view: covered, bucketNs: BigInt(answer.bucketNs) })
  return cache
}
