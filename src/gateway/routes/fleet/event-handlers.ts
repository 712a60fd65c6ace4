/** /v1/events: events on the devices that the caller may see, as server-sent events (WHATWG HTML, 9.2). */
import { Bell } from '../../../shared/base/bell.ts'
import { takeParameters } from '../../../shared/contract/request-parameters.ts'
import { answerLive } from '../../../shared/http/live-answer.ts'
import { eventTexts } from '../../../shared/http/server-sent-events.ts'
import { EVENTS_PARAMETERS, FLEET_PARAMETERS } from '../../../shared/query/download/gateway-options.ts'
import { readParameters } from '../../../shared/query/read-parameters.ts'
import type { Device } from '../../device/device.ts'
import { eventsWithoutQueries } from '../../device/emptied-queries.ts'
import type { EventsFrom, FleetEvents } from '../../fleet/events/fleet-events.ts'
import { isSelected } from '../../fleet/select-devices.ts'
import { selectedDevices } from '../request/fleet-selection.ts'
import { callerOf } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { FleetParts } from './fleet-parts.ts'

const EVERYTHING_KEPT = '0'

export async function followFleet(ctx: RouteContext, parts: FleetParts): Promise<void> {
  const { devices, lastEventId } = takeParameters(ctx, { ...FLEET_PARAMETERS, ...EVENTS_PARAMETERS })
  // A browser sends the header when it reconnects to an address that may still contain the parameter.
  const from = beginOf(headerId(ctx) ?? lastEventId)
  // Unknown devices may appear while discovery is incomplete; only then are unknown names accepted.
  if (parts.fleet.isComplete) selectedDevices(ctx, parts)
  const wants = wantedDevices(ctx, devices ?? String(ctx.headers['capfleet-device'] ?? '*'))
  const { name: user } = callerOf(ctx)
  const shown = ctx.state.emptiesQueries === true ? eventsWithoutQueries : (text: string) => text
  await answerLive(parts, ctx, {
    caller: { user, id: user },
    contentType: 'text/event-stream; charset=utf-8',
    texts: (signal) => fleetEvents(parts.events, { wants, from, signal, shown }),
  })
}

function beginOf(id: string | undefined): EventsFrom {
  if (id === undefined) return 'now'
  return id === EVERYTHING_KEPT ? 'kept' : { id }
}

function headerId(ctx: RouteContext): string | undefined {
  const text = ctx.get('Last-Event-ID')
  return text === ''
    ? undefined
    : readParameters(EVENTS_PARAMETERS, new Map([[EVENTS_PARAMETERS.lastEventId.name, text]])).lastEventId
}

/** Includes devices that the fleet does not have yet, or no longer has. */
function wantedDevices(ctx: RouteContext, chosen: string): (device: Device) => boolean {
  const selections = [...callerOf(ctx).bounds.devices, chosen]
  return (device) => selections.every((selection) => isSelected(device, selection))
}

interface Following {
  readonly wants: (device: Device) => boolean
  readonly from: EventsFrom
  readonly signal: AbortSignal
  /** Converts an event to the form that the caller may see. */
  readonly shown: (text: string) => string
}

async function* fleetEvents(
  events: FleetEvents,
  { wants, from, signal, shown }: Following,
): AsyncGenerator<string> {
  using bell = new Bell()
  using reader = events.open({ wants, from, onNews: bell.ring })
  const next = () => {
    const text = reader.next()
    return text && shown(text)
  }
  yield* eventTexts({ title: 'events of the fleet', bell, next, signal })
}
