/** Audit events of workers. */
import { type AuditActor, NOBODY } from '../audit/audit-events.ts'
import type { Audit } from '../audit/audit-log.ts'
import { type ExportOrder, orderFacts } from './export-order.ts'
import type { ExportedFile, ReportedFailure } from './export-record.ts'

/** How an export ended. */
export interface ExportEnd {
  readonly outcome: 'complete' | 'partial' | 'failed'
  readonly files: readonly ExportedFile[]
  readonly error?: ReportedFailure
}

/** Call it before the end becomes visible to anyone. Fails with audit-unavailable; the export must not end then. */
export async function recordEnd(
  audit: Audit,
  order: ExportOrder,
  { outcome, files, error }: ExportEnd,
): Promise<void> {
  const sum = (member: 'packets' | 'bytes') => files.reduce((total, file) => total + BigInt(file[member]), 0n)
  const details = {
    export: order.id,
    outcome,
    ...orderFacts(order),
    packets: sum('packets'),
    bytes: sum('bytes'),
    error: error?.code,
  }
  await audit.record({ ...actorOf(order), event: 'export.ended', details })
}

/** Call it before a scheduled run becomes an export. Fails with audit-unavailable; the run must not become one then. */
export async function recordRun(audit: Audit, order: ExportOrder): Promise<void> {
  const details = { export: order.id, schedule: order.scheduleId, ...orderFacts(order) }
  await audit.record({ ...actorOf(order), event: 'export.scheduled', details })
}

/** The user who ordered the export, who is no longer connected. */
function actorOf({ user }: ExportOrder): AuditActor {
  return { ...NOBODY, user }
}
