/** Audit events of refused requests: a limited number of short lines, however many requests there are. */
import { parse } from 'basic-auth'
import { LRUCache } from 'lru-cache'
import { CapfleetError } from '../../../shared/base/error.ts'
import { PerSecond } from '../../../shared/base/per-second.ts'
import type { AuditLog } from '../../audit/audit-log.ts'
import { actorOf } from './audited.ts'
import type { RouteContext } from './route-context.ts'

/** Maximum number of lines per second for failed logins, for all refusals, and for the refusals of one user. */
const FAILED_LOGINS_PER_S = 20
const REFUSALS_PER_S = 20
const REFUSALS_OF_USER_PER_S = 2
const USERS_MAX = 1_000
/** Maximum length of a path or query string; the rest is not needed to see what was refused. */
const TEXT_MAX = 512

/** Records callers that were refused because of who they are. */
export class RefusalAudit {
  readonly #audit: Pick<AuditLog, 'recordRefusal'>
  readonly #logins = new PerSecond(FAILED_LOGINS_PER_S)
  readonly #refusals = new PerSecond(REFUSALS_PER_S)
  readonly #byUser = new LRUCache<string, PerSecond>({ max: USERS_MAX })

  constructor(audit: Pick<AuditLog, 'recordRefusal'>) {
    this.#audit = audit
  }

  /** Calls `answer`, and records its failure if that is a refusal. */
  async watch(ctx: RouteContext, answer: () => Promise<void>): Promise<void> {
    try {
      await answer()
    } catch (error) {
      if (error instanceof CapfleetError) await this.#record(ctx, error)
      throw error
    }
  }

  /** Records invalid credentials. */
  async failedLogin(ctx: RouteContext): Promise<void> {
    const others = this.#logins.take(performance.now())
    if (others === undefined) return
    const name = parse(ctx.get('Authorization'))?.name.slice(0, TEXT_MAX)
    const details = { name, path: cut(ctx.path), others: others === 0 ? undefined : others }
    await this.#audit.recordRefusal({ ...actorOf(ctx), event: 'login.failed', details })
  }

  async #record(ctx: RouteContext, { code, details: { members } }: CapfleetError): Promise<void> {
    const isFailedLogin = code === 'unauthenticated' && ctx.get('Authorization') !== ''
    if (isFailedLogin || code === 'bad-ticket') return await this.failedLogin(ctx)
    if (code !== 'insufficient-scope' && code !== 'out-of-bounds') return
    const nowMs = performance.now()
    const ofUser = this.#limitOf(ctx.state.caller?.name ?? '')
    const others = ofUser.take(nowMs)
    if (others === undefined) return
    const othersOfAll = this.#refusals.take(nowMs)
    if (othersOfAll === undefined) return ofUser.leaveOut(others + 1)
    const details = {
      method: ctx.method,
      path: cut(ctx.path),
      query: cut(ctx.querystring),
      error: code,
      needed: members?.needed,
      others: others === 0 ? undefined : others,
    }
    await this.#audit.recordRefusal({ ...actorOf(ctx), event: 'access.refused', details })
  }

  #limitOf(user: string): PerSecond {
    const limit = this.#byUser.get(user) ?? new PerSecond(REFUSALS_OF_USER_PER_S)
    this.#byUser.set(user, limit)
    return limit
  }
}

function cut(text: string): string {
  return text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX)}... (${text.length} characters)`
}
