import { fetchCaptureLists } from '../fleet/capture-lists.ts'
import type { DeviceClient } from '../fleet/device-client.ts'
import { findCapture } from '../fleet/find-capture.ts'
import { selectedDevices } from './fleet-selection.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { requestSignal } from './request-signal.ts'
import type { RouteContext } from './route.ts'

/**
 * The name of the one device, of those that the request chooses, that holds the capture. Fails with
 * ambiguous-capture, unknown-capture, or the error of a device that could not be asked.
 */
export async function captureHolder(
  captureName: string,
  ctx: RouteContext,
  parts: GatewayParts,
): Promise<string> {
  const clients = selectedDevices(ctx, parts).flatMap((device): DeviceClient[] => {
    const client = parts.clients.get(device.name)
    return client === undefined ? [] : [client]
  })
  using leaving = requestSignal(ctx)
  const found = await fetchCaptureLists(clients, {
    timeoutMs: parts.limits.probeTimeoutMs,
    signal: leaving.signal,
  })
  return findCapture(captureName, found)
}
