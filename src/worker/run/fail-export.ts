/** Fails or pauses an export that cannot be completed as ordered, or not now. */
import { recordEnd } from '../../gateway/export/export-audit.ts'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import { type ExportParts, Later } from '../../gateway/export/export-parts.ts'
import { type ExportRecord, LIVE_STATES, type ReportedFailure } from '../../gateway/export/export-record.ts'
import { asBefore } from '../../gateway/export/fill-export.ts'
import type { CapfleetError } from '../../shared/base/error.ts'

/**
 * The export ends without files; if holes were being filled, it keeps its previous files. Does nothing if the export
 * has another writer than the given one.
 */
export async function failExport(
  {
    store,
    jobs,
    outcomes,
    audit,
    clock,
  }: Pick<ExportParts, 'store' | 'jobs' | 'outcomes' | 'audit' | 'clock'>,
  record: ExportRecord,
  error: ReportedFailure,
  writer?: string,
): Promise<void> {
  const { order, base } = record
  const ended =
    base === undefined ? ({ state: 'failed', endedMs: clock.nowMs() } as const) : asBefore(base, record)
  const change = { ...ended, stage: 'ended', writer: '', error } as const
  const guard = { states: LIVE_STATES, ...(writer === undefined ? {} : { writer }) }
  await recordEnd(audit, order, { outcome: 'failed', files: [], error })
  const { isChanged } = await store.change(order, change, guard)
  if (isChanged) outcomes.ended('failed')
  await jobs.clean(order.id)
}

/** Pauses the export until there is space. */
export async function pauseExport(
  parts: ExportParts,
  order: ExportOrder,
  error: CapfleetError,
): Promise<never> {
  parts.outcomes.paused()
  await parts.store.change(order, { state: 'paused', error: reported(error) }, { states: LIVE_STATES })
  throw new Later(parts.limits.fullPauseMs)
}

export function reported(error: CapfleetError): ReportedFailure {
  return { code: error.code, detail: error.message }
}
