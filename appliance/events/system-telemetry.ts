/** /api/v1/system/telemetry: the groups of the system status again and again, one JSON line each. */
import { addAbortListener } from 'node:events'
import { Bell } from '../../src/shared/base/bell.ts'
import type { Caller } from '../../src/shared/base/caller.ts'
import { TELEMETRY_PARAMETERS } from '../../src/shared/contract/device-parameters.ts'
import { takeParameters } from '../../src/shared/contract/request-parameters.ts'
import { answerLive } from '../../src/shared/http/live-answer.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { callerOf } from '../request/labelled-caller.ts'
import { toExactJson } from '../system-status/exact-json.ts'
import { readStatus, shownGroups } from '../system-status/status-groups.ts'

interface TelemetryRequest {
  readonly intervalMs: number
  /** undefined = until the client leaves. */
  readonly count: number | undefined
}

/** Sends them `Count` times, every `Interval` seconds; the first lines are sent at once. */
export async function answerTelemetry(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const { count, intervalS } = takeParameters(ctx, TELEMETRY_PARAMETERS)
  const intervalMs = intervalS === undefined ? parts.config.telemetry.intervalMs : intervalS * 1000
  const request = { count, intervalMs }
  await answerLive(parts, ctx, {
    caller: callerOf(ctx),
    contentType: 'application/x-ndjson',
    texts: (signal) => telemetryTexts(parts, request, ctx.state.caller, signal),
  })
}

/** One line of JSON for each group, exactly as in the system status for that caller. */
export function telemetryLines(parts: ApplianceParts, caller: Caller | undefined): readonly string[] {
  return Object.values(shownGroups(readStatus(parts).groups, caller)).map(toExactJson)
}

async function* telemetryTexts(
  parts: ApplianceParts,
  { intervalMs, count = Number.POSITIVE_INFINITY }: TelemetryRequest,
  caller: Caller | undefined,
  signal: AbortSignal,
): AsyncGenerator<string> {
  using bell = new Bell()
  addAbortListener(signal, bell.ring)
  const isDue = bell.every(intervalMs)
  for (let sent = 1; !signal.aborted; sent++) {
    yield `${telemetryLines(parts, caller).join('\n')}\n`
    if (sent >= count) return
    while (!isDue() && !signal.aborted) await bell.wait()
  }
}
