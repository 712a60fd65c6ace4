/** /api/v1/capture/schedule: the rows of the configuration and when they run. */
import { takeNoParameters } from '../../src/shared/contract/request-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { nowNs } from '../appliance-parts.ts'
import type { CaptureReport } from '../link/capture-report.ts'
import { nextRun, runAt, type ScheduleRow } from '../settings/schedule-rows.ts'

const NANOS_PER_MS = 1_000_000n

/** State of a row: "" = it is not its time; "due" = its time has come and no recorder reports more. */
type RowState = '' | 'due' | 'running' | 'waiting' | 'skipped'

export async function answerSchedule(
  ctx: ApplianceContext,
  { config, sensors }: ApplianceParts,
): Promise<void> {
  takeNoParameters(ctx)
  const nowMs = Number(nowNs() / NANOS_PER_MS)
  ctx.set('Cache-Control', 'no-store')
  ctx.body = { List: config.capture.schedule.map((row) => describe(row, nowMs, sensors.capture.value)) }
}

/** Times are epoch nanoseconds, of the current run or else of the next; "0" = it never stops. */
function describe(row: ScheduleRow, nowMs: number, report: CaptureReport | undefined) {
  const current = runAt([row], nowMs)
  const next = nextRun(row, nowMs)
  return {
    Name: row.name,
    Start: row.start,
    Stop: row.stop,
    Days: row.days,
    Zone: row.zone,
    State: current === undefined ? '' : stateOf(row, report),
    NextStartTS: toNanos(next?.startMs),
    NextStopTS: toNanos((current ?? next)?.endMs),
  }
}

function stateOf({ name }: ScheduleRow, report: CaptureReport | undefined): RowState {
  if (report?.scheduleName === name) return 'running'
  if (report?.waitingRow === name) return 'waiting'
  return report?.skippedRow === name ? 'skipped' : 'due'
}

function toNanos(ms: number | undefined): string {
  return ms === undefined || !Number.isFinite(ms) ? '0' : String(BigInt(ms) * NANOS_PER_MS)
}
