/** Audit events of a question that is answered in lines: one before a device is asked, and one before its client can see the end. */
import type { AuditActor, AuditEventName } from '../../audit/audit-events.ts'
import type { Audit } from '../../audit/audit-log.ts'

/** What is recorded of a question to devices whose answer is sent in lines. */
export interface LinesAuditFacts {
  readonly actor: AuditActor
  readonly events: { readonly begin: AuditEventName; readonly end: AuditEventName }
  readonly devices: readonly string[]
  /** What is asked, recorded before a device is asked. */
  readonly details: object
}

export interface LinesAuditEnd {
  readonly outcome: 'complete' | 'incomplete' | 'failed' | 'client-gone'
  /** The code of an error. */
  readonly error?: string | undefined
}

export class LinesAudit {
  readonly #audit: Audit
  readonly #facts: LinesAuditFacts
  #hasBegun = false
  #hasEnded = false

  constructor(audit: Audit, facts: LinesAuditFacts) {
    this.#audit = audit
    this.#facts = facts
  }

  /** Fails with audit-unavailable; no device may be asked then. */
  async begin(): Promise<void> {
    const { actor, events, details } = this.#facts
    await this.#audit.record({ ...actor, event: events.begin, details: { ...details } })
    this.#hasBegun = true
  }

  /** The first call counts. Fails with audit-unavailable; the client must not see a clean end then. */
  async end(end: LinesAuditEnd): Promise<void> {
    if (!this.#hasBegun || this.#hasEnded) return
    this.#hasEnded = true
    const { actor, events, devices } = this.#facts
    try {
      await this.#audit.record({ ...actor, event: events.end, details: { devices, ...end } })
    } catch (failure) {
      this.#hasEnded = false
      throw failure
    }
  }
}
