/** /api/v1/system/telemetry: the groups of the system status again and again, one JSON line each. */
import { QueryParameters } from '../../src/query/query-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { finishParameters } from '../request/finish-parameters.ts'
import { toExactJson } from '../system-status/exact-json.ts'
import { readStatus } from '../system-status/status-groups.ts'
import { Bell } from './bell.ts'
import { answerLive } from './live-answer.ts'

/** A longer silence would look to a gateway as if the device were gone. */
const INTERVAL_MAX_S = 30n
const COUNT_MAX = 1_000_000n

interface TelemetryRequest {
  readonly intervalMs: number
  /** undefined = until the client leaves. */
  readonly count: number | undefined
}

/** `Count` times, every `Interval` seconds; the first lines come at once. */
export async function answerTelemetry(parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  const parameters = new QueryParameters(ctx.querystring)
  const count = parameters.takeInteger('Count', 1n, COUNT_MAX)
  const intervalS = parameters.takeInteger('Interval', 1n, INTERVAL_MAX_S)
  finishParameters(ctx, parameters)
  const request = {
    count: count === undefined ? undefined : Number(count),
    intervalMs: intervalS === undefined ? parts.config.telemetry.intervalMs : Number(intervalS) * 1000,
  }
  await answerLive(parts, ctx, {
    contentType: 'application/x-ndjson',
    texts: (signal) => telemetryTexts(parts, request, signal),
  })
}

/** One line of JSON for each group, exactly as in the system status. */
export function telemetryLines(parts: ApplianceParts): readonly string[] {
  return Object.values(readStatus(parts).groups).map(toExactJson)
}

async function* telemetryTexts(
  parts: ApplianceParts,
  { intervalMs, count = Number.POSITIVE_INFINITY }: TelemetryRequest,
  signal: AbortSignal,
): AsyncGenerator<string> {
  using bell = new Bell()
  signal.addEventListener('abort', bell.ring, { once: true })
  const isDue = bell.every(intervalMs)
  for (let sent = 1; !signal.aborted; sent++) {
    yield `${telemetryLines(parts).join('\n')}\n`
    if (sent >= count) return
    while (!isDue() && !signal.aborted) await bell.wait()
  }
}
