/**
 * The progress of an export, as server-sent events. Each event has the whole export, so that none depends on the
 * previous one.
 */
import { addAbortListener } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Bell } from '../../../shared/base/bell.ts'
import { takeNoParameters } from '../../../shared/contract/request-parameters.ts'
import { answerLive } from '../../../shared/http/live-answer.ts'
import { formatEvent } from '../../../shared/http/server-sent-events.ts'
import { RECORD_KEPT_MS } from '../../export/export-changes.ts'
import { ENDED_STATES, shownExport, type WholeExport } from '../../export/export-record.ts'
import { callerOf } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import { ownExport } from './export-handlers.ts'
import type { ExportsParts } from './exports-parts.ts'

/** Shorter than proxies wait for a byte. */
const SILENCE_MAX_MS = 15_000
/** Minimum interval between two events for a follower. */
const EVENT_EVERY_MS = 250

/**
 * Ends when the export has ended, the client leaves or the gateway stops; clients then reconnect with Last-Event-ID.
 */
export async function followExport(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  takeNoParameters(ctx)
  const record = await ownExport(ctx, parts, ctx.params.id ?? '')
  const first = { record, files: await parts.exports.store.keptFiles(record) }
  const seen = Number(ctx.get('Last-Event-ID') || 0)
  const { name: user } = callerOf(ctx)
  await answerLive({ draining: parts.draining, live: parts.exports.followers }, ctx, {
    caller: { user, id: user },
    contentType: 'text/event-stream; charset=utf-8',
    texts: (signal) => exportTexts(parts, first, { seen, signal }),
  })
}

interface Following {
  /** The revision that the client has. */
  readonly seen: number
  readonly signal: AbortSignal
}

async function* exportTexts(
  parts: ExportsParts,
  first: WholeExport,
  { seen, signal }: Following,
): AsyncGenerator<string> {
  using bell = new Bell()
  addAbortListener(signal, bell.ring)
  let changedMs = performance.now()
  using _following = parts.exports.changes.follow(first.record.order.id, () => {
    changedMs = performance.now()
    bell.ring()
  })
  const isSilent = bell.every(SILENCE_MAX_MS)
  let told = seen
  for (let whole: WholeExport | undefined = first; whole !== undefined; ) {
    const { record } = whole
    if (record.revision > told) yield eventOf(parts, whole)
    else if (isSilent()) yield ': still there\n\n'
    told = Math.max(told, record.revision)
    if (signal.aborted || ENDED_STATES.includes(record.state)) return
    await delay(EVENT_EVERY_MS, undefined, { signal }).catch(() => undefined)
    await bell.wait()
    if (signal.aborted) return
    whole = await find(parts, record.order.id, { sinceMs: changedMs, signal })
  }
}

/** The export as of `sinceMs` or later, read once for all followers. Nothing is sent while Redis is unreachable. */
async function find(
  { exports, log }: ExportsParts,
  id: string,
  { sinceMs, signal }: { readonly sinceMs: number; readonly signal: AbortSignal },
): Promise<WholeExport | undefined> {
  try {
    const maxAgeMs = Math.min(performance.now() - sinceMs, RECORD_KEPT_MS)
    return await exports.records.get(id, { maxAgeMs, signal }, () => exports.store.findWhole(id))
  } catch (error) {
    if (!signal.aborted) log.warn('export.follow-failed', { message: (error as Error).message })
    return undefined
  }
}

function eventOf({ exports: { clock } }: ExportsParts, whole: WholeExport): string {
  const shown = JSON.stringify(shownExport(whole, clock.nowMs()))
  return formatEvent('export', shown, whole.record.revision)
}
