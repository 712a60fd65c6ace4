/** How the devices do, as the gateway's probes found them. */
import { answered, gateway, type Schemas } from './ask-gateway.ts'
import { type Asked, useAsked } from './asked.ts'

export type DeviceReport = Schemas['Device']

/** What devices that did not answer a question failed with, by their names. */
export type DeviceFailures = ReadonlyMap<string, { readonly code: string; readonly detail: string }>

export function useDevices(everyMs: number): Asked<readonly DeviceReport[]> {
  return useAsked(async (signal) => (await answered(gateway.GET('/v1/devices', { signal }))).devices, {
    key: 'devices',
    everyMs,
  })
}
