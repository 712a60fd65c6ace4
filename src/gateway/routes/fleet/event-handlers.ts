/** /v1/events: events on the devices that the caller may see, as server-sent events (WHATWG HTML, 9.2). */
import { Bell } from '../../../shared/base/bell.ts'
import { takeParameters } from '../../../shared/contract/request-parameters.ts'
import { answerLive } from '../../../shared/http/live-answer.ts'
import { EVENTS_PARAMETERS, FLEET_PARAMETERS } from '../../../shared/query/gateway-options.ts'
import { readParameters } from '../../../shared/query/read-parameters.ts'
import type { Device } from '../../device/device.ts'
import { eventsWithoutQueries } from '../../device/emptied-queries.ts'
import type { EventsFrom, FleetEvents } from '../../fleet/events/fleet-events.ts'
import { isSelected } from '../../fleet/select-devices.ts'
import { selectedDevices } from '../request/fleet-selection.ts'
import { callerOf } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { FleetParts } from './fleet-parts.ts'

/** Shorter than proxies allow a connection to be silent. */
const KEEP_ALIVE_MS = 15_000
/** The first bytes, which show the client at once that it is connected; it may reconnect after 2 s. */
const GREETING = 'retry: 2000\n: events of the fleet\n\n'
const KEEP_ALIVE = ': keep-alive\n\n'
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
    texts: (signal) => eventTexts(parts.events, { wants, from, signal, shown }),
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

async function* eventTexts(
  events: FleetEvents,
  { wants, from, signal, shown }: Following,
): AsyncGenerator<string> {
  using bell = new Bell()
  signal.addEventListener('abort', bell.ring, { once: true })
  using reader = events.open({ wants, from, onNews: bell.ring })
  const isSilent = bell.every(KEEP_ALIVE_MS)
  yield GREETING
  while (!signal.aborted) {
    for (let text = reader.next(); text !== undefined && !signal.aborted; text = reader.next())
      yield shown(text)
    if (isSilent()) yield KEEP_ALIVE
    await bell.wait()
  }
}
