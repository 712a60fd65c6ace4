/** What workers leave in the audit. */
import { type AuditActor, NOBODY } from '../audit/audit-events.ts'
import type { Audit } from '../audit/audit-log.ts'
import { type ExportOrder, orderFacts } from './export-order.ts'
import type { ExportedFile, ReportedFailure } from './export-record.ts'

/** How an export ends. */
export interface ExportEnd {
  readonly outcome: 'complete' | 'partial' | 'failed'
  readonly files: readonly ExportedFile[]
  readonly error?: ReportedFailure
}

/** Before anybody can see the end. Fails with audit-unavailable: then the export must not end. */
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

/** Before a run of a schedule becomes an export. Fails with audit-unavailable: then it must not. */
export async function recordRun(audit: Audit, order: ExportOrder): Promise<void> {
  const details = { export: order.id, schedule: order.scheduleId, ...orderFacts(order) }
  await audit.record({ ...actorOf(order), event: 'export.scheduled', details })
}

/** Whose export it is; they have left long ago. */
function actorOf({ user }: ExportOrder): AuditActor {
  return { ...NOBODY, user }
}
