/** What requests leave in the audit, beside downloads. */
import { parse } from 'basic-auth'
import type { AuditActor, AuditEventName } from '../../audit/audit-events.ts'
import type { Audit } from '../../audit/audit-log.ts'
import type { Credential } from '../../base/caller.ts'
import { CapfleetError } from '../../base/error.ts'
import type { GatewayRoute, RouteContext } from '../route.ts'

/** Who asks. */
export function actorOf({ state }: RouteContext): AuditActor {
  const { caller, address, requestId } = state
  return {
    user: caller?.name ?? null,
    address,
    credential: caller === undefined ? 'none' : credentialText(caller.credential),
    requestId,
  }
}

function credentialText(credential: Credential): string {
  return credential.kind === 'password' ? 'password' : `${credential.kind}:${credential.id}`
}

/** Whether the row changes something, or may. */
export function isAudited({ isChange, scope }: GatewayRoute): boolean {
  return isChange === true || scope === 'capture:control' || scope === 'capture:delete'
}

/** By the begin of the path; all else changes devices. */
const SUBJECTS = {
  '/v1/exports': 'export.change',
  '/v1/schedules': 'schedule.change',
  '/v1/session': 'session.change',
  '/v1/tokens': 'token.change',
  '/v1/tickets': 'ticket.change',
} as const

type Subject = (typeof SUBJECTS)[keyof typeof SUBJECTS] | 'control'

function subjectOf(path: string): Subject {
  const known = Object.entries(SUBJECTS).find(([begin]) => path === begin || path.startsWith(`${begin}/`))
  return known?.[1] ?? 'control'
}

/**
 * Does what the row does between two lines. Fails with audit-unavailable before anything has changed; what has
 * changed is answered as it is.
 */
export async function auditChange(
  ctx: RouteContext,
  audit: Audit,
  change: () => Promise<void>,
  subject: Subject = subjectOf(ctx.path),
): Promise<void> {
  const record = (event: AuditEventName, details: object) =>
    audit.record({ ...actorOf(ctx), event, details: { method: ctx.method, path: ctx.path, ...details } })
  const { device } = ctx.params as { readonly device?: string }
  if (device !== undefined) ctx.state.devices = [device]
  const selection = ctx.get('Capfleet-Device')
  await record(`${subject}.begin`, {
    query: ctx.querystring,
    devices: ctx.state.devices,
    selection: selection === '' ? undefined : selection,
  })
  const end = (outcome: object) =>
    record(`${subject}.end`, { devices: ctx.state.devices, ...outcome }).catch(() => undefined)
  try {
    await change()
  } catch (error) {
    await end(
      error instanceof CapfleetError ? { status: error.kind.status, error: error.code } : { status: 500 },
    )
    throw error
  }
  const location = ctx.response.get('Location')
  await end({ status: ctx.res.statusCode, location: location === '' ? undefined : location })
}

/** Logins that fail are told of so often; whoever tries more of them must not fill the disk. */
const FAILED_LOGINS_PER_S = 20

/** Tells of those who were refused because of who they are. */
export class RefusalAudit {
  readonly #audit: Audit
  #secondMs = 0
  #told = 0
  /** Failed logins since the last one that was told of. */
  #untold = 0

  constructor(audit: Audit) {
    this.#audit = audit
  }

  /** Does `answer`, and tells when it fails for that. */
  async watch(ctx: RouteContext, answer: () => Promise<void>): Promise<void> {
    try {
      await answer()
    } catch (error) {
      if (error instanceof CapfleetError) await this.#tell(ctx, error).catch(() => undefined)
      throw error
    }
  }

  /** Somebody has sent credentials that are nobody's. */
  async failedLogin(ctx: RouteContext): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#secondMs >= 1_000) {
      this.#secondMs = nowMs
      this.#told = 0
    }
    this.#untold += 1
    if (this.#told >= FAILED_LOGINS_PER_S) return
    this.#told += 1
    const others = this.#untold - 1
    this.#untold = 0
    const name = parse(ctx.get('Authorization'))?.name
    const details = { name, path: ctx.path, others: others === 0 ? undefined : others }
    await this.#audit.record({ ...actorOf(ctx), event: 'login.failed', details }).catch(() => undefined)
  }

  async #tell(ctx: RouteContext, { code, details: { members } }: CapfleetError): Promise<void> {
    const isFailedLogin = code === 'unauthenticated' && ctx.get('Authorization') !== ''
    if (isFailedLogin || code === 'bad-ticket') return await this.failedLogin(ctx)
    if (code !== 'insufficient-scope' && code !== 'out-of-bounds') return
    const asked = { method: ctx.method, path: ctx.path, query: ctx.querystring }
    const details = { ...asked, error: code, needed: members?.needed }
    await this.#audit.record({ ...actorOf(ctx), event: 'access.refused', details })
  }
}
