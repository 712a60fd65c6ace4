/** Audit events of requests other than downloads. */
import type { Credential } from '../../../shared/base/caller.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import { type Changed, type Endpoint, parametersOf } from '../../../shared/contract/endpoint.ts'
import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import type { AuditActor, AuditEventName } from '../../audit/audit-events.ts'
import type { Audit } from '../../audit/audit-log.ts'
import type { RouteContext } from './route-context.ts'

/** The caller of the request. */
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
export function isAudited({ changes, scope }: Endpoint): boolean {
  return changes !== undefined || scope === 'capture:control' || scope === 'capture:delete'
}

/**
 * The request's parameters that its route defines, as they were decoded. Handlers and devices decode parameters in the
 * same way, so a query string that cannot be decoded is rejected here. Fails with bad-parameter.
 */
export function parameterFacts(ctx: RouteContext, route: Endpoint): Readonly<Record<string, string>> {
  const names = new Set(parametersOf(route).map(({ name }) => name))
  return Object.fromEntries([...givenParameters(ctx)].filter(([name]) => names.has(name)))
}

/** What the first line of a change contains besides its request. */
interface ChangeOptions {
  /** Default: devices, which a call that we do not know may change. */
  readonly changes?: Changed | undefined
  readonly parameters?: Readonly<Record<string, string>>
}

/**
 * Runs the route's action between two audit lines. Fails with audit-unavailable before anything has changed; once
 * something has changed, it is reported as it is.
 */
export async function auditChange(
  ctx: RouteContext,
  audit: Audit,
  change: () => Promise<void>,
  { changes = 'devices', parameters }: ChangeOptions,
): Promise<void> {
  const subject = changes === 'devices' ? 'control' : (`${changes}.change` as const)
  const record = (event: AuditEventName, details: object) =>
    audit.record({ ...actorOf(ctx), event, details: { method: ctx.method, path: ctx.path, ...details } })
  const { device } = ctx.params as { readonly device?: string }
  if (device !== undefined) ctx.state.facts = { devices: [device] }
  const selection = ctx.get('Capfleet-Device')
  await record(`${subject}.begin`, {
    ...ctx.state.facts,
    capture: parameters?.StreamName,
    parameters,
    query: ctx.querystring,
    selection: selection === '' ? undefined : selection,
  })
  const end = (outcome: object) =>
    record(`${subject}.end`, { ...ctx.state.facts, ...outcome }).catch(() => undefined)
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

/** Records that a caller reads other users' data. Fails with audit-unavailable; nothing may be sent then. */
export async function auditRead(ctx: RouteContext, audit: Audit, route: Endpoint): Promise<void> {
  const parameters = parameterFacts(ctx, route)
  const details = { path: ctx.path, parameters, query: ctx.querystring }
  await audit.record({ ...actorOf(ctx), event: 'access.read', details })
}
