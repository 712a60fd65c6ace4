/** How devices do, as the gateway's probes found them. */
import { answered, gateway, type Schemas } from '../base/ask-gateway.ts'

export type DeviceReport = Schemas['Device']

export async function askDevices(signal: AbortSignal): Promise<readonly DeviceReport[]> {
  return (await answered(gateway.GET('/v1/devices', { signal }))).devices
}
