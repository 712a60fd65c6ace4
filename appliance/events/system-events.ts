/** /api/v1/system/events: events of the device, as server-sent events (WHATWG HTML, 9.2). */
import { Bell } from '../../src/shared/base/bell.ts'
import type { Caller } from '../../src/shared/base/caller.ts'
import { EVENT_PARAMETERS } from '../../src/shared/contract/device-parameters.ts'
import { takeParameters } from '../../src/shared/contract/request-parameters.ts'
import { answerLive } from '../../src/shared/http/live-answer.ts'
import { eventTexts, formatEvent } from '../../src/shared/http/server-sent-events.ts'
import { badParameter, quote } from '../../src/shared/query/query-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { callerOf } from '../request/labelled-caller.ts'
import { EventCursor } from './event-cursor.ts'
import { telemetryLines } from './system-telemetry.ts'

interface EventRequest {
  /** Number of the last event that the client has seen; undefined = it wants events from now on. */
  readonly seenId: number | undefined
  readonly hasTelemetry: boolean
}

/** `Last-Event-ID` (header) or `LastEventID` resume; `Telemetry=1` adds the groups of the status. */
export async function answerEvents(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const request = parseRequest(ctx)
  await parts.events.refresh()
  await answerLive(parts, ctx, {
    caller: callerOf(ctx),
    contentType: 'text/event-stream',
    texts: (signal) => deviceEvents(parts, request, ctx.state.caller, signal),
  })
}

function parseRequest(ctx: ApplianceContext): EventRequest {
  const { lastEventId, hasTelemetry } = takeParameters(ctx, EVENT_PARAMETERS)
  // A browser sends the header when it reconnects to an address that may still contain the parameter.
  return { seenId: parseHeader(ctx.get('Last-Event-ID')) ?? lastEventId, hasTelemetry }
}

function parseHeader(text: string): number | undefined {
  if (text === '') return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw badParameter('Last-Event-ID', `must be the id of an event, got ${quote(text)}`)
}

async function* deviceEvents(
  parts: ApplianceParts,
  { seenId, hasTelemetry }: EventRequest,
  caller: Caller | undefined,
  signal: AbortSignal,
): AsyncGenerator<string> {
  using bell = new Bell()
  using _changes = parts.events.onChange(bell.ring)
  const cursor = new EventCursor(parts.events, seenId)
  const isTelemetryDue = hasTelemetry ? bell.every(parts.config.telemetry.intervalMs) : () => false
  const next = () => cursor.next() ?? (isTelemetryDue() ? telemetryEvents(parts, caller) : undefined)
  yield* eventTexts({ title: 'events of capfleet', bell, next, signal })
}

function telemetryEvents(parts: ApplianceParts, caller: Caller | undefined): string {
  return telemetryLines(parts, caller)
    .map((line) => formatEvent('telemetry', line))
    .join('')
}
