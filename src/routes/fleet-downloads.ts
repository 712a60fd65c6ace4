/** Downloads at the root: from whatever devices of the fleet hold the packets. */

import { fetchCaptureLists } from '../fleet/capture-lists.ts'
import type { DeviceClient } from '../fleet/device-client.ts'
import { findCapture } from '../fleet/find-capture.ts'
import { planDownload } from '../fleet/plan.ts'
import type { DownloadKind, DownloadQuery } from '../query/download-query.ts'
import { answerDownload } from './answer-download.ts'
import { FLEET_PARAMETERS, selectedDevices } from './fleet-selection.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { parseRequestQuery } from './parse-request-query.ts'
import { requestSignal } from './request-signal.ts'
import type { RouteContext, RouteHandler } from './route.ts'

/** The packets of a time range from all chosen devices, in the order of time. */
export async function downloadTimeRange(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const query = parseRequestQuery('timerange', ctx, parts, FLEET_PARAMETERS)
  const devices = selectedDevices(ctx, parts).map((device) => device.name)
  await answerDownload(ctx, planDownload(query, devices, parts.limits.devicesMax), parts)
}

/** A capture, or a part of it, from the one device that holds it. */
export function downloadCapture(kind: Exclude<DownloadKind, 'timerange'>): RouteHandler {
  return async (ctx, parts) => {
    const query = parseRequestQuery(kind, ctx, parts, FLEET_PARAMETERS)
    const device = await holderOf(query, ctx, parts)
    await answerDownload(ctx, planDownload(query, [device], parts.limits.devicesMax), parts)
  }
}

async function holderOf(query: DownloadQuery, ctx: RouteContext, parts: GatewayParts): Promise<string> {
  const clients = selectedDevices(ctx, parts).flatMap((device): DeviceClient[] => {
    const client = parts.clients.get(device.name)
    return client === undefined ? [] : [client]
  })
  using leaving = requestSignal(ctx)
  const found = await fetchCaptureLists(clients, {
    timeoutMs: parts.limits.probeTimeoutMs,
    signal: leaving.signal,
  })
  return findCapture(query.captureName ?? '', found)
}
