/** Fails an export that cannot be completed as ordered. */
import { recordEnd } from '../../gateway/export/export-audit.ts'
import type { ExportParts } from '../../gateway/export/export-parts.ts'
import { type ExportRecord, LIVE_STATES, type ReportedFailure } from '../../gateway/export/export-record.ts'
import { asBefore } from '../../gateway/export/fill-export.ts'

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
