/**
 * Downloads: at the root, from whichever devices of the fleet hold the packets; below /devices/{device}/, from that
 * one.
 */
import type { DownloadKind } from '../../../shared/query/download/download-query.ts'
import { planDownload } from '../../fleet/plan/plan.ts'
import { captureHolder } from '../request/capture-holder.ts'
import { selectedSources } from '../request/fleet-selection.ts'
import { parseRequestQuery, type QueryParser } from '../request/parse-request-query.ts'
import type { RouteHandler } from '../request/route-context.ts'
import { answerDownload } from './answer-download.ts'
import type { DownloadsParts } from './downloads-parts.ts'

/** The packets of a time range from all selected devices, in time order. */
export function downloadTimeRange(parse: QueryParser): RouteHandler<DownloadsParts> {
  return async (ctx, parts) => {
    await answerDownload(ctx, parts, () => {
      const query = parseRequestQuery(ctx, parts, { kind: 'timerange', parse, at: 'fleet' })
      const devices = selectedSources(ctx, parts).map((device) => device.name)
      return planDownload(query, devices, parts.limits.devicesMax)
    })
  }
}

/** A capture, or a part of it, from the one device that holds it. */
export function downloadCapture(
  kind: Exclude<DownloadKind, 'timerange'>,
  parse: QueryParser,
): RouteHandler<DownloadsParts> {
  return async (ctx, parts) => {
    await answerDownload(ctx, parts, async () => {
      const query = parseRequestQuery(ctx, parts, { kind, parse, at: 'fleet' })
      const device = await captureHolder(query.captureName ?? '', ctx, parts)
      return planDownload(query, [device], parts.limits.devicesMax)
    })
  }
}

/**
 * A download from one device, which must behave as if requested from the device directly: local times are in its zone,
 * TSMode may be one of its own aliases. Bad parameters are rejected before a lease is taken.
 */
export function downloadFromDevice(kind: DownloadKind, parse: QueryParser): RouteHandler<DownloadsParts> {
  return async (ctx, parts) => {
    const { device } = parts.fleet.choose(ctx.params.device ?? '')
    await answerDownload(ctx, parts, () =>
      planDownload(parseRequestQuery(ctx, parts, { kind, parse, at: 'gateway' }), [device.name], 1),
    )
  }
}
