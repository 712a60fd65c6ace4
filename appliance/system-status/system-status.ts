/** /api/v1/system/status. */
import type { Caller } from '../../src/shared/base/caller.ts'
import { takeNoParameters } from '../../src/shared/contract/request-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { toExactJson } from './exact-json.ts'
import { readStatus, shownGroups } from './status-groups.ts'

export async function answerStatus(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  takeNoParameters(ctx)
  ctx.set('Cache-Control', 'no-store')
  ctx.body = statusFor(ctx.state.caller, parts)
  ctx.type = 'json'
}

/** Serializing some thousand members takes two milliseconds: requests in the same turn get the same text. */
const OF_THIS_TURN = new WeakMap<ApplianceParts, Map<string, Buffer>>()

function statusFor(caller: Caller | undefined, parts: ApplianceParts): Buffer {
  const texts = OF_THIS_TURN.get(parts) ?? new Map<string, Buffer>()
  if (texts.size === 0) {
    OF_THIS_TURN.set(parts, texts)
    setImmediate(() => OF_THIS_TURN.delete(parts))
  }
  // The same distinction of callers as in shownGroups().
  const kind = caller === undefined ? 'anonymous' : caller.scopes.has('audit:read') ? 'auditor' : 'user'
  const text = texts.get(kind) ?? Buffer.from(toExactJson(statusOf(caller, parts)))
  texts.set(kind, text)
  return text
}

function statusOf(caller: Caller | undefined, parts: ApplianceParts) {
  const { timestamp, ver, groups } = readStatus(parts)
  return { timestamp, ver, ...shownGroups(groups, caller) }
}
