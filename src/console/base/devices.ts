/** The state of the devices, as found by the gateway's probes. */
import { answered, gateway, type Schemas } from './ask-gateway.ts'
import { type Asked, useAsked } from './asked.ts'

export type DeviceReport = Schemas['Device']

/** The failures of devices that did not answer a question, by name. */
export type DeviceFailures = ReadonlyMap<string, { readonly code: string; readonly detail: string }>

export function useDevices(everyMs: number): Asked<readonly DeviceReport[]> {
  return useAsked(async (signal) => (await answered(gateway.GET('/v1/devices', { signal }))).devices, {
    key: 'devices',
    everyMs,
  })
}
