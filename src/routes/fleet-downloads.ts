/** Downloads at the root: from whatever devices of the fleet hold the packets. */

import { planDownload } from '../fleet/plan.ts'
import type { DownloadKind } from '../query/download-query.ts'
import { answerDownload } from './answer-download.ts'
import { captureHolder } from './capture-holder.ts'
import { selectedSources } from './fleet-selection.ts'
import { parseRequestQuery, type QueryParser } from './parse-request-query.ts'
import type { RouteHandler } from './route.ts'

/** The packets of a time range from all chosen devices, in the order of time. */
export function downloadTimeRange(parse: QueryParser): RouteHandler {
  return async (ctx, parts) => {
    await answerDownload(ctx, parts, () => {
      const query = parseRequestQuery(ctx, parts, { kind: 'timerange', parse, at: 'fleet' })
      const devices = selectedSources(ctx, parts).map((device) => device.name)
      return planDownload(query, devices, parts.limits.devicesMax)
    })
  }
}

/** A capture, or a part of it, from the one device that holds it. */
export function downloadCapture(kind: Exclude<DownloadKind, 'timerange'>, parse: QueryParser): RouteHandler {
  return async (ctx, parts) => {
    await answerDownload(ctx, parts, async () => {
      const query = parseRequestQuery(ctx, parts, { kind, parse, at: 'fleet' })
      const device = await captureHolder(query.captureName ?? '', ctx, parts)
      return planDownload(query, [device], parts.limits.devicesMax)
    })
  }
}
