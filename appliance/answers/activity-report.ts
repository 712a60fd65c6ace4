/** /api/v1/activity: how much was recorded when, for a chart of a time range. */
import { ACTIVITY_PARAMETERS, ACTIVITY_RANGE } from '../../src/shared/contract/device-parameters.ts'
import { givenParameters, takeParameters } from '../../src/shared/contract/request-parameters.ts'
import { readActivityRange } from '../../src/shared/query/download/query-range.ts'
import { type ApplianceContext, type ApplianceParts, nowNs } from '../appliance-parts.ts'
import { withLostMarked } from '../downloads/lost-segments.ts'
import { onHeld } from '../downloads/on-held.ts'
import { withClientSignal } from '../request/client-signal.ts'
import {
  dropsIn,
  gapsIn,
  type RecordedTime,
  spansIn,
  type TimedEvent,
  trimmedIn,
} from '../store/recorded-time.ts'
import type { TimeSpan } from '../store/removed-spans.ts'
import { isCapturing } from '../system-status/capture-group.ts'
import { ActivityBuckets } from './activity-buckets.ts'
import { countActivity } from './count-activity.ts'

export async function answerActivity(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const { catalogue, config, profiles } = parts
  const { buckets: most } = takeParameters(ctx, { ...ACTIVITY_RANGE, ...ACTIVITY_PARAMETERS })
  const range = readActivityRange(givenParameters(ctx), { zone: config.timeZone, nowNs: nowNs() })
  await withClientSignal(ctx, async (signal) => {
    const find = async () => ({
      captures: await catalogue.list(),
      agedOut: await catalogue.listAgedOut(),
    })
    const folderOf = catalogue.folderOf.bind(catalogue)
    const count = async (held: Awaited<ReturnType<typeof find>>) => {
      const buckets = new ActivityBuckets(range, most)
      const damaged = await countActivity(buckets, held.captures, { folderOf, profiles }, signal)
      return { buckets, held, damaged }
    }
    const { buckets, held, damaged } = await onHeld(find, count, async ({ captures, agedOut }) => ({
      captures: await Promise.all(captures.map((capture) => withLostMarked(capture, folderOf(capture)))),
      agedOut,
    }))
    const recorded: RecordedTime = { ...held, ...toldBy(parts) }
    const apartNs = buckets.bucketNs / 2n
    ctx.set('Cache-Control', 'no-store')
    ctx.body = {
      fromNs: String(range.beginNs),
      toNs: String(range.endNs),
      bucketNs: String(buckets.bucketNs),
      packets: buckets.packets,
      bytes: buckets.bytes,
      exact: buckets.isExact,
      gaps: gapsIn(range, apartNs, recorded).map(shownSpan),
      dropped: dropsIn(range, apartNs, recorded).map((span) => ({
        ...shownSpan(span),
        packets: String(span.packets),
      })),
      trimmed: trimmedIn(range, apartNs, recorded).map(shownSpan),
      damaged: spansIn(range, apartNs, damaged).map(shownSpan),
    }
  })
}

const TOLD: ReadonlySet<string> = new Set(['capture-resumed', 'packets-dropped'])

function toldBy({ sensors, events }: ApplianceParts): Omit<RecordedTime, 'captures' | 'agedOut'> {
  const report = sensors.capture.value
  const told: TimedEvent[] = []
  for (const { data } of events.kept()) if (TOLD.has(data.Kind)) told.push(data)
  return {
    events: told,
    running: report !== undefined && isCapturing(report) ? report.name : undefined,
    nowNs: nowNs(),
  }
}

function shownSpan({ beginNs, endNs }: TimeSpan) {
  return { fromNs: String(beginNs), toNs: String(endNs) }
}
