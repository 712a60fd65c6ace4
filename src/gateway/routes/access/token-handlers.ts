/** Tokens: issued, listed, revoked. */
import { type Caller, isOf, originOf } from '../../../shared/base/caller.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import { takeNoParameters, takeParameters } from '../../../shared/contract/request-parameters.ts'
import { TOKEN_PARAMETER_SPELLINGS, TOKEN_PARAMETERS } from '../../../shared/contract/token-parameters.ts'
import { refuseBody } from '../../../shared/http/request-body.ts'
import { joinFilters } from '../../../shared/query/filter/joined-filter.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { parseQueryTime } from '../../../shared/query/time/query-time.ts'
import type { WantedToken } from '../../auth/own-tokens.ts'
import type { TokenRecord } from '../../auth/token-store.ts'
import { selectDevices } from '../../fleet/select-devices.ts'
import { refuseBadFilter } from '../request/check-download.ts'
import { refuseUnsafeChange } from '../request/refuse-request.ts'
import { answerPrivately, callerOf } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { AccessParts } from './access-parts.ts'

const NS_PER_MS = 1_000_000n

/** Issues a token with the caller's rights or fewer. The token is only in this answer; it is not stored. */
export async function issueToken(ctx: RouteContext, parts: AccessParts): Promise<void> {
  refuseUnsafeChange(ctx)
  refuseBody(ctx)
  const caller = callerOf(ctx)
  const { lifetimeS, expires, scopes, note, device, filterBpf, ...own } = takeParameters(ctx, {
    ...TOKEN_PARAMETERS,
    ...TOKEN_PARAMETER_SPELLINGS,
  })
  if (lifetimeS !== undefined && expires !== undefined)
    throw badParameter('Expires', 'and Lifetime are both given; use only one of them')
  const expiresMs = expires === undefined ? undefined : endOf(expires, parts.limits.timeZone)
  const bounds = {
    ...own,
    devices: eitherSpelling(own.devices, device, ['Devices', 'Device']),
    filter: eitherSpelling(own.filter, filterBpf, ['Filter', 'FilterBPF']),
  }
  await refuseBadBounds(ctx, parts, bounds)
  const { token, issued } = await parts.tokens.own.issue(caller, {
    lifetimeS,
    expiresMs,
    scopes,
    bounds,
    note,
  })
  ctx.set('Location', `/v1/tokens/${issued.id}`)
  answerPrivately(ctx, { ...shownToken({ ...issued, revokedMs: undefined }), token }, 201)
}

/** Epoch milliseconds. Fails with bad-parameter. */
function endOf(text: string, zone: string): number {
  const nowNs = BigInt(Date.now()) * NS_PER_MS
  const { ns } = parseQueryTime(text, {
    parameter: TOKEN_PARAMETERS.expires.name,
    unit: undefined,
    hasNoUnit: true,
    zone,
    nowNs,
    beginNs: nowNs,
    isEnd: true,
  })
  return Number(ns / NS_PER_MS)
}

function eitherSpelling(
  one: string | undefined,
  other: string | undefined,
  [name, otherName]: readonly [string, string],
): string | undefined {
  if (one !== undefined && other !== undefined)
    throw badParameter(otherName, `is another spelling of ${name}; use only one of them`)
  return one ?? other
}

export async function listTokens(ctx: RouteContext, parts: AccessParts): Promise<void> {
  takeNoParameters(ctx)
  const caller = callerOf(ctx)
  const records = await parts.tokens.store.list(caller.scopes.has('admin') ? undefined : caller.name)
  answerPrivately(ctx, { tokens: records.filter((record) => maySeeToken(caller, record)).map(shownToken) })
}

/** Fails with unknown-token. */
export async function revokeToken(ctx: RouteContext, parts: AccessParts): Promise<void> {
  refuseUnsafeChange(ctx)
  takeNoParameters(ctx)
  const { store, revocations } = parts.tokens
  const id = String(ctx.params.id)
  const found = await store.find(id)
  if (found === undefined || !maySeeToken(callerOf(ctx), found)) throw unknownToken(id)
  await store.revoke(found)
  revocations.add(found)
  answerPrivately(ctx, shownToken((await store.find(id)) ?? found))
}

/**
 * A token sees itself and those derived from it: a thief must not learn about, or revoke, others. A provider's token
 * is derived from none of ours: like a password it represents the user.
 */
function maySeeToken(caller: Caller, { id, user, parents, createdMs: madeMs }: TokenRecord): boolean {
  if (caller.scopes.has('admin')) return true
  if (!isOf(caller, { user, madeMs })) return false
  const credential = originOf(caller.credential)
  if (credential.kind === 'password') return true
  const isOfProvider = credential.kind === 'token' && credential.chain.length === 0
  return isOfProvider || id === credential.id || parents.includes(credential.id)
}

async function refuseBadBounds(
  ctx: RouteContext,
  parts: AccessParts,
  { devices, filter }: WantedToken['bounds'],
): Promise<void> {
  if (devices !== undefined) selectDevices(parts.fleet.devices, devices, TOKEN_PARAMETERS.devices.name)
  if (filter === undefined) return
  await refuseBadFilter(ctx, filter, TOKEN_PARAMETERS.filter.name, parts)
  // A token whose every download would fail.
  joinFilters([...callerOf(ctx).bounds.filters, filter], undefined)
}

function shownToken({ createdMs, expiresMs, revokedMs, parents, note, ...token }: TokenRecord) {
  return {
    ...token,
    note: note ?? null,
    parentId: parents.at(-1) ?? null,
    createdAt: instant(createdMs),
    expiresAt: instant(expiresMs),
    revokedAt: revokedMs === undefined ? null : instant(revokedMs),
  }
}

function instant(ms: number): string {
  return new Date(ms).toISOString()
}

function unknownToken(id: string): CapfleetError {
  return new CapfleetError(
    'unknown-token',
    `you have no token ${JSON.stringify(id.slice(0, 64))}; GET /v1/tokens lists yours`,
  )
}
