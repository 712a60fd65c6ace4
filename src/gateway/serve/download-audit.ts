/** Audit events of a download: a line before anything is taken, and one before its client can see the end. */
import type { AuditActor, AuditEventName } from '../audit/audit-events.ts'
import type { Audit } from '../audit/audit-log.ts'
import type { PlanFacts } from '../fleet/plan/plan-facts.ts'
import type { StoredReceipt } from './receipt.ts'

export interface DownloadAuditFacts {
  readonly actor: AuditActor
  readonly path: string
  /** The query string as given. */
  readonly query: string
  readonly plan: PlanFacts
  /** The request that this one continues. */
  readonly resumedId: string | undefined
}

export class DownloadAudit {
  readonly #audit: Audit
  readonly #facts: DownloadAuditFacts
  #hasBegun = false
  #hasEnded = false

  constructor(audit: Audit, facts: DownloadAuditFacts) {
    this.#audit = audit
    this.#facts = facts
  }

  /** Fails with audit-unavailable; nothing may be sent then. */
  async begin(): Promise<void> {
    const { path, query, plan, resumedId } = this.#facts
    await this.#record('download.begin', { ...plan, path, query, resumed: resumedId })
    this.#hasBegun = true
  }

  /** The first call counts. Fails with audit-unavailable; the client must not see a clean end then. */
  async end({ status, packets, bytes, sha256, error }: StoredReceipt): Promise<void> {
    if (!this.#hasBegun || this.#hasEnded) return
    this.#hasEnded = true
    const { devices } = this.#facts.plan
    const told = { devices, outcome: status, packets, bytes, sha256: sha256 ?? undefined, error: error?.code }
    try {
      await this.#record('download.end', told)
    } catch (failure) {
      this.#hasEnded = false
      throw failure
    }
  }

  #record(event: AuditEventName, details: Readonly<Record<string, unknown>>): Promise<void> {
    return this.#audit.record({ ...this.#facts.actor, event, details })
  }
}
