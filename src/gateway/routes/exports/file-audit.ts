/** Audit events of sending a file of an export. */
import type { WantedPart } from '../../../shared/http/wanted-part.ts'
import type { AuditActor, AuditEventName } from '../../audit/audit-events.ts'
import type { Audit } from '../../audit/audit-log.ts'
import type { PlanFacts } from '../../fleet/plan/plan-facts.ts'

export interface SentFile extends Partial<PlanFacts> {
  /** Id of the export. */
  readonly export: string
  /** Name of the file. */
  readonly file: string
}

export class FileAudit {
  readonly #audit: Audit
  readonly #actor: AuditActor
  readonly #sent: SentFile
  #hasEnded = false

  constructor(audit: Audit, actor: AuditActor, sent: SentFile) {
    this.#audit = audit
    this.#actor = actor
    this.#sent = sent
  }

  /** Fails with audit-unavailable; nothing may be sent then. */
  async begin(part: WantedPart): Promise<void> {
    const range = part.status === 206 ? { first: part.first, last: part.last } : {}
    await this.#record('export.file.begin', range)
  }

  /** The first call counts. Fails with audit-unavailable; the client must not see a clean end then. */
  async end(outcome: 'complete' | 'failed' | 'client-gone', bytes: number): Promise<void> {
    if (this.#hasEnded) return
    this.#hasEnded = true
    await this.#record('export.file.end', { outcome, bytes })
  }

  #record(event: AuditEventName, details: Readonly<Record<string, unknown>>): Promise<void> {
    return this.#audit.record({ ...this.#actor, event, details: { ...this.#sent, ...details } })
  }
}
