import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import { FLEET_PARAMETERS } from '../../../shared/query/download/gateway-options.ts'
import { parseQueryString, withoutPluses } from '../../../shared/query/parse-query-string.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { readParameters } from '../../../shared/query/read-parameters.ts'
import type { Device } from '../../device/device.ts'
import { chooseDevices, chooseSources } from '../../fleet/choose-devices.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import type { RequestParts } from './request-parts.ts'
import type { RouteContext } from './route-context.ts'

/**
 * The devices that the request selects with Device= or the header Capfleet-Device; neither = all. Fails with
 * discovery-pending while there may be more of them.
 */
export function selectedDevices(ctx: RouteContext, parts: RequestParts): readonly Device[] {
  return chooseDevices(parts.fleet, ...selectionOf(ctx))
}

/** selectedDevices for a request for packets. Fails with no-device if there is none. */
export function selectedSources(ctx: RouteContext, parts: RequestParts): readonly Device[] {
  return chooseSources(parts.fleet, ...selectionOf(ctx))
}

/** Also returns the name of the parameter that selects them. */
function selectionOf(ctx: RouteContext): [selection: string | undefined, param: string] {
  const { devices: parameter } = readParameters(FLEET_PARAMETERS, givenParameters(ctx))
  const header = ctx.headers['capfleet-device'] as string | undefined
  if (parameter !== undefined && header !== undefined) {
    throw badParameter('Device', 'and the header Capfleet-Device were both given; give only one of them')
  }
  return parameter === undefined ? [header, 'Capfleet-Device'] : [parameter, 'Device']
}

/** selectedMembers for a call that changes them. Fails with bad-parameter if the request does not select any. */
export function membersToChange(ctx: RouteContext, parts: RequestParts): readonly FleetMember[] {
  const { devices } = readParameters(FLEET_PARAMETERS, givenParameters(ctx))
  if (devices === undefined && ctx.headers['capfleet-device'] === undefined) {
    throw badParameter('Device', 'is missing; name the devices to change, or Device=* for all of them')
  }
  return selectedMembers(ctx, parts)
}

/** The members for selectedDevices. */
export function selectedMembers(ctx: RouteContext, parts: RequestParts): readonly FleetMember[] {
  return membersOf(selectedDevices(ctx, parts), parts)
}

/** The members for selectedSources. */
export function sourceMembers(ctx: RouteContext, parts: RequestParts): readonly FleetMember[] {
  return membersOf(selectedSources(ctx, parts), parts)
}

function membersOf(devices: readonly Device[], { fleet }: RequestParts): readonly FleetMember[] {
  return devices.flatMap(({ name }) => fleet.find(name) ?? [])
}

/** The query string for a device, without the parameter that selected the device. */
export function withoutDevice(querystring: string): string {
  const pairs = withoutPluses(querystring).split('&')
  return pairs.filter((pair) => !parseQueryString(pair).has(FLEET_PARAMETERS.devices.name)).join('&')
}
