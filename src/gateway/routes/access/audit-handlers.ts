/** The audit, for callers who may read it. */
import { FairLimit } from '../../../shared/base/fair-limit.ts'
import { AUDIT_PARAMETERS, AUDIT_PLACE } from '../../../shared/contract/audit-parameters.ts'
import { takeParameters } from '../../../shared/contract/request-parameters.ts'
import { readListTimes } from '../../../shared/query/time/list-times.ts'
import { type AuditPlace, type ChainEntry, readAuditPage } from '../../audit/read-audit.ts'
import { seesAll, seesQueries } from '../request/caller-bounds.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext, RouteHandler } from '../request/route-context.ts'
import type { AccessParts } from './access-parts.ts'

/** A page without matches takes a second of CPU time. */
const PAGES_AT_ONCE = 2

/** A page of the audit of all gateways and workers that share its folder, newest lines first. */
export function listAudit(): RouteHandler<AccessParts> {
  const turns = new FairLimit({ places: PAGES_AT_ONCE })
  return async (ctx, parts) => {
    const { limit, after, user, event, device, from, to } = takeParameters(ctx, AUDIT_PARAMETERS)
    const nowNs = BigInt(Date.now()) * 1_000_000n
    const { fromNs, toNs, timeZone } = readListTimes({ from, to }, { zone: parts.limits.timeZone, nowNs })
    if (timeZone !== undefined) ctx.set('Capfleet-Time-Zone', timeZone)
    using leaving = requestSignal(ctx)
    const { signal } = leaving
    using _turn = await turns.acquire(signal, ctx.state.caller?.name)
    const { entries, next } = await readAuditPage(parts.audit.folder, {
      limit,
      after: after === undefined ? undefined : parsePlace(after),
      user,
      event,
      device,
      fromMs: millisecondsOf(fromNs),
      toMs: millisecondsOf(toNs),
      isVisible: (line) => maySeeLine(ctx, parts, line),
      signal,
    })
    ctx.set('Cache-Control', 'no-store')
    ctx.body = {
      entries: entries.map(({ chain, entry }) => ({ chain, ...entry })),
      next: next === undefined ? null : `${next.atMs}.${next.seq}.${next.chain}`,
    }
  }
}

/**
 * A caller with bounds sees what they did themselves, as far as they may see its devices; other users' filters are not
 * shown to them.
 */
function maySeeLine(ctx: RouteContext, parts: AccessParts, { entry }: ChainEntry): boolean {
  const { caller } = ctx.state
  if (caller === undefined) return false
  if (seesQueries(ctx)) return true
  const named = Array.isArray(entry.devices) ? (entry.devices as readonly string[]) : []
  return entry.user === caller.name && seesAll(parts, named)
}

function millisecondsOf(ns: bigint | undefined): number | undefined {
  return ns === undefined ? undefined : Number(ns / 1_000_000n)
}

/** REQUIRES: the text matches AUDIT_PLACE. */
function parsePlace(text: string): AuditPlace | undefined {
  const { atMs, seq, chain = '' } = AUDIT_PLACE.exec(text)?.groups ?? {}
  return { atMs: Number(atMs), seq: Number(seq), chain }
}
