/** Audit events of a search for addresses: a line before a device is asked, and one before its client can see the end. */
import { hash } from 'node:crypto'
import type { AuditActor } from '../../audit/audit-events.ts'
import type { Audit } from '../../audit/audit-log.ts'
import { planFacts } from '../../fleet/plan-facts.ts'
import type { SeenQuestion } from '../../fleet/seen-question.ts'

export interface SeenAuditFacts {
  readonly actor: AuditActor
  readonly path: string
  readonly devices: readonly string[]
  readonly question: SeenQuestion
}

export interface SeenAuditEnd {
  readonly outcome: 'complete' | 'incomplete' | 'failed' | 'client-gone'
  readonly found: number
  readonly unanswered?: readonly string[]
  readonly partial?: readonly string[]
  /** The code of an error. */
  readonly error?: string | undefined
}

/** The addresses that a line names. */
const SHOWN_MAX = 100

export class SeenAudit {
  readonly #audit: Audit
  readonly #facts: SeenAuditFacts
  #hasBegun = false
  #hasEnded = false

  constructor(audit: Audit, facts: SeenAuditFacts) {
    this.#audit = audit
    this.#facts = facts
  }

  /** Fails with audit-unavailable; no device may be asked then. */
  async begin(): Promise<void> {
    const { actor, path, devices, question } = this.#facts
    const { texts, verify, query } = question
    const isLong = texts.length > SHOWN_MAX
    const details = {
      ...planFacts(query, devices),
      verify,
      addressCount: texts.length,
      addresses: texts.slice(0, SHOWN_MAX),
      addressesHash: isLong ? hash('sha256', texts.join(',')) : undefined,
      path,
    }
    await this.#audit.record({ ...actor, event: 'seen.begin', details })
    this.#hasBegun = true
  }

  /** The first call counts. Fails with audit-unavailable; the client must not see a clean end then. */
  async end(end: SeenAuditEnd): Promise<void> {
    if (!this.#hasBegun || this.#hasEnded) return
    this.#hasEnded = true
    const { actor, devices } = this.#facts
    try {
      await this.#audit.record({ ...actor, event: 'seen.end', details: { devices, ...end } })
    } catch (failure) {
      this.#hasEnded = false
      throw failure
    }
  }
}
