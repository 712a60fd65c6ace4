import type { Device } from '../fleet/device.ts'
import { selectDevices } from '../fleet/select-devices.ts'
import { parseQueryString } from '../query/parse-query-string.ts'
import { badParameter } from '../query/query-parameters.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './route.ts'

/** Parameters of the fleet's paths that mean nothing to a device. */
export const FLEET_PARAMETERS: readonly string[] = ['Device']

/** The devices that the request chooses by Device= or the header Capfleet-Device; neither = all. */
export function selectedDevices(ctx: RouteContext, parts: GatewayParts): readonly Device[] {
  const parameter = parseQueryString(ctx.querystring).get('Device')
  const header = ctx.get('Capfleet-Device')
  if (parameter !== undefined && header !== '') {
    throw badParameter('Device', 'and the header Capfleet-Device were both given; give one of them')
  }
  if (parameter !== undefined) return selectDevices(parts.fleet, parameter)
  return selectDevices(parts.fleet, header, 'Capfleet-Device')
}
