import { givenParameters } from '../contract/request-parameters.ts'
import type { Device } from '../device/device.ts'
import type { FleetMember } from '../fleet/fleet.ts'
import { selectDevices } from '../fleet/select-devices.ts'
import { FLEET_PARAMETERS } from '../query/gateway-options.ts'
import { parseQueryString } from '../query/parse-query-string.ts'
import { badParameter } from '../query/query-parameters.ts'
import { readParameters, refuseMiscased } from '../query/read-parameters.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './route.ts'

/** The devices that the request chooses by Device= or the header Capfleet-Device; neither = all. */
export function selectedDevices(ctx: RouteContext, parts: GatewayParts): readonly Device[] {
  const { devices: parameter } = readParameters(FLEET_PARAMETERS, givenParameters(ctx))
  const header = ctx.headers['capfleet-device'] as string | undefined
  if (parameter !== undefined && header !== undefined) {
    throw badParameter('Device', 'and the header Capfleet-Device were both given; give one of them')
  }
  if (parameter !== undefined) return selectDevices(parts.fleet.devices, parameter)
  return selectDevices(parts.fleet.devices, header, 'Capfleet-Device')
}

/**
 * selectedMembers of a call that changes them. Fails with bad-parameter when nobody said which: a name that is
 * misspelt, by its case or otherwise, must not change the whole fleet.
 */
export function membersToChange(ctx: RouteContext, parts: GatewayParts): readonly FleetMember[] {
  const given = givenParameters(ctx)
  const { devices } = readParameters(FLEET_PARAMETERS, given)
  if (devices === undefined && ctx.headers['capfleet-device'] === undefined) {
    refuseMiscased([FLEET_PARAMETERS], given)
    throw badParameter('Device', 'is missing; name the devices to change, or Device=* for all of them')
  }
  return selectedMembers(ctx, parts)
}

/** selectedDevices with what it takes to talk to them. */
export function selectedMembers(ctx: RouteContext, parts: GatewayParts): readonly FleetMember[] {
  return selectedDevices(ctx, parts).flatMap((device) => parts.fleet.find(device.name) ?? [])
}

/** The query string for a device, which does not know the parameter that chose it. */
export function withoutDevice(querystring: string): string {
  return querystring
    .split('&')
    .filter((pair) => !parseQueryString(pair).has(FLEET_PARAMETERS.devices.name))
    .join('&')
}
