/** How an export goes on, as server-sent events: each is the whole export, so that none needs the one before it. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { takeNoParameters } from '../../contract/request-parameters.ts'
import { ENDED_STATES, type ExportRecord, shownExport } from '../../export/export-record.ts'
import type { GatewayParts } from '../gateway-parts.ts'
import { refuseWhileDraining } from '../request/refuse-request.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../route.ts'
import { ownExport } from './export-handlers.ts'

/** Shorter than proxies wait for a byte. */
const SILENCE_MAX_MS = 15_000
/** A client that cannot take more is told less. */
const EVENT_EVERY_MS = 250

/** Ends when the export has, the client leaves or the gateway stops; clients come back with Last-Event-ID then. */
export async function followExport(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  refuseWhileDraining(parts)
  takeNoParameters(ctx)
  const first = await ownExport(ctx, parts, ctx.params.id ?? '')
  const seen = Number(ctx.get('Last-Event-ID') || 0)
  using leaving = requestSignal(ctx)
  const signal = AbortSignal.any([leaving.signal, parts.draining])
  const { id } = first.order
  const bell = new Bell(signal)
  using _following = parts.exports.changes.follow(id, () => bell.ring())
  ctx.respond = false
  const { res } = ctx
  res.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  })
  let told = seen
  for (let record: ExportRecord | undefined = first; record !== undefined; record = await find(parts, id)) {
    if (record.revision > told) await write(res, eventOf(parts, record), signal)
    told = Math.max(told, record.revision)
    if (signal.aborted || ENDED_STATES.includes(record.state)) break
    const isRung = await bell.wait(SILENCE_MAX_MS)
    if (signal.aborted) break
    if (!isRung) await write(res, ': still there\n\n', signal)
  }
  res.end()
}

/** While Redis is away nothing is told. */
async function find({ exports, log }: GatewayParts, id: string): Promise<ExportRecord | undefined> {
  try {
    return await exports.store.find(id)
  } catch (error) {
    log.warn('export.follow-failed', { message: (error as Error).message })
    return undefined
  }
}

function eventOf({ exports: { clock } }: GatewayParts, record: ExportRecord): string {
  return `id: ${record.revision}\nevent: export\ndata: ${JSON.stringify(shownExport(record, clock.nowMs()))}\n\n`
}

async function write(res: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  if (res.closed || res.write(text)) return
  await once(res, 'drain', { signal }).catch(() => undefined)
}

/** Rings at most so often; rings that come together are one. */
class Bell {
  readonly #signal: AbortSignal
  #isRung = false
  #wake: (() => void) | undefined

  constructor(signal: AbortSignal) {
    this.#signal = signal
    signal.addEventListener('abort', () => this.#wake?.(), { once: true })
  }

  ring(): void {
    this.#isRung = true
    this.#wake?.()
  }

  /** Whether it has rung since the last time, within `ms`. */
  async wait(ms: number): Promise<boolean> {
    await this.#pause(EVENT_EVERY_MS, () => false)
    await this.#pause(ms - EVENT_EVERY_MS, () => this.#isRung)
    const isRung = this.#isRung
    this.#isRung = false
    return isRung
  }

  #pause(ms: number, isOver: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#wake = undefined
        resolve()
      }
      const timer = setTimeout(end, ms)
      this.#wake = () => {
        if (this.#signal.aborted || isOver()) end()
      }
      this.#wake()
    })
  }
}
