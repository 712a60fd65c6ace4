/**
 * Searches for addresses: /v1/seen over the chosen devices, whose lines are sent as they arrive; below
 * /devices/{device}/ the answer is that of the device.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CapfleetError } from '../../../shared/base/error.ts'
import { FairLimit } from '../../../shared/base/fair-limit.ts'
import { JoinedSignal } from '../../../shared/base/joined-signal.ts'
import { takeParameters } from '../../../shared/contract/request-parameters.ts'
import { SEEN_PARAMETERS, SEEN_RANGE, SEEN_WAIT } from '../../../shared/contract/seen-parameters.ts'
import { sendTexts } from '../../../shared/http/live-answer.ts'
import { FLEET_PARAMETERS } from '../../../shared/query/gateway-options.ts'
import { parseDownloadQuery } from '../../../shared/query/parse-download-query.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { rfc3339Of } from '../../../shared/query/query-time.ts'
import { openDeviceSearch } from '../../fetch/device-search.ts'
import { FleetSearch } from '../../fetch/fleet-search.ts'
import type { SeenRequest } from '../../fetch/seen-answer.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import { type SeenEnd, type SeenQuestion, seenQuestion } from '../../fleet/seen-question.ts'
import { actorOf } from '../request/audited.ts'
import { refuseBadFilters } from '../request/check-download.ts'
import { sourceMembers } from '../request/fleet-selection.ts'
import { parseRequestQuery } from '../request/parse-request-query.ts'
import { refuseWhileDraining } from '../request/refuse-request.ts'
import { callerOf, requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { DownloadsParts } from './downloads-parts.ts'
import { SeenAudit, type SeenAuditEnd } from './seen-audit.ts'
import type { SeenOutcome } from './seen-outcomes.ts'

/** Fails before the first byte only for mistakes of the caller. Devices that fail have a line in the answer. */
export async function searchFleet(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  using _place = takePlace(ctx, parts)
  const { question, waitS } = await inTurn(ctx, () => readQuestion(ctx, parts, 'fleet'))
  const members = sourceMembers(ctx, parts)
  await answerSearch(ctx, parts, {
    question,
    waitS,
    members,
    begin: async (request) => {
      const search = new FleetSearch(members, question, parts.seen, request)
      return {
        lines: search.lines(),
        end: () => {
          const end = search.end()
          const { unanswered, partial } = end
          return { line: end, facts: { outcome: outcomeOf(end), unanswered, partial } }
        },
        [Symbol.asyncDispose]: async () => undefined,
      }
    },
  })
}

/** As if the device were asked directly, but within the bounds of the caller, and with Verify by the queue. */
export async function searchDevice(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  const member = parts.fleet.choose(ctx.params.device ?? '')
  using _place = takePlace(ctx, parts)
  const { question, waitS } = await inTurn(ctx, () => readQuestion(ctx, parts, 'gateway'))
  await answerSearch(ctx, parts, {
    question,
    waitS,
    members: [member],
    begin: async (request) => {
      const search = await openDeviceSearch(member, question, parts.seen, request)
      let end: SeenEnd | undefined
      const lines = async function* () {
        for await (const lines of search.lines()) {
          end = lines.find((line) => 'end' in line)
          const others = lines.filter((line) => !('end' in line))
          if (others.length > 0) yield others
        }
      }
      return {
        lines: lines(),
        end: () => ({ line: end ?? {}, facts: { outcome: outcomeOf({ complete: end?.complete === true }) } }),
        [Symbol.asyncDispose]: () => search[Symbol.asyncDispose](),
      }
    },
  })
}

function outcomeOf({ complete }: { readonly complete: boolean }): 'complete' | 'incomplete' {
  return complete ? 'complete' : 'incomplete'
}

/** Before the list is read, which takes longer than all that a refusal costs. */
function takePlace(ctx: RouteContext, { seen }: DownloadsParts): Disposable {
  const user = callerOf(ctx).name
  return seen.running.take({ user, id: user })
}

/** Lists that are read in one turn of the event loop: other requests get theirs in between. */
const READING = new FairLimit({ places: 1 })

async function inTurn<Result>(ctx: RouteContext, read: () => Result): Promise<Result> {
  using leaving = requestSignal(ctx)
  using _turn = await READING.acquire(leaving.signal, callerOf(ctx).name)
  const result = read()
  await nextTurn()
  return result
}

/** fleet, gateway: as for downloads. */
function readQuestion(
  ctx: RouteContext,
  parts: DownloadsParts,
  at: 'fleet' | 'gateway',
): Pick<AskedSearch, 'question' | 'waitS'> {
  refuseWhileDraining(parts)
  const rows = { ...SEEN_RANGE, ...SEEN_PARAMETERS, ...SEEN_WAIT }
  const { waitS, ...options } = takeParameters(ctx, at === 'fleet' ? { ...FLEET_PARAMETERS, ...rows } : rows)
  const query = parseRequestQuery(ctx, parts, { kind: 'timerange', parse: parseSeenRange, at })
  const { beginNs, endNs, localTimes, timeZone } = query
  if (beginNs === endNs && localTimes === undefined)
    throw badParameter('TSEnd', `(${rfc3339Of(endNs)}) must be later than TSBegin`)
  if (timeZone !== undefined) ctx.set('Capfleet-Time-Zone', timeZone)
  return { question: seenQuestion(query, options), waitS }
}

/** The parameters that a download has too. */
const SHARED_NAMES: ReadonlySet<string> = new Set(
  [...Object.values(SEEN_RANGE), SEEN_PARAMETERS.filterBpf].map(({ name }) => name),
)

const parseSeenRange: typeof parseDownloadQuery = (kind, given, context) =>
  parseDownloadQuery(kind, new Map([...given].filter(([name]) => SHARED_NAMES.has(name))), context)

/** The search itself: all lines but the last one, which is complete when they were read. */
interface Search extends AsyncDisposable {
  readonly lines: AsyncIterable<readonly object[]>
  end(): { readonly line: object; readonly facts: Omit<SeenAuditEnd, 'found'> }
}

interface AskedSearch {
  readonly question: SeenQuestion
  readonly members: readonly FleetMember[]
  readonly waitS: number | undefined
  /** Fails before the first byte. */
  readonly begin: (request: SeenRequest) => Promise<Search>
}

async function answerSearch(ctx: RouteContext, parts: DownloadsParts, asked: AskedSearch): Promise<void> {
  const { question, members } = asked
  const devices = members.map(({ device }) => device.name)
  await parts.downloads.fleet.knowKinds(devices)
  await refuseBadFilters(ctx, { query: question.query, steps: devices.map((device) => ({ device })) }, parts)
  if (ctx.method === 'HEAD') {
    sendHead(ctx)
    ctx.res.end()
    return
  }
  const audit = new SeenAudit(parts.audit, { actor: actorOf(ctx), path: ctx.path, devices, question })
  await new RunningSearch(ctx, parts, asked, audit).serve()
}

function sendHead(ctx: RouteContext): void {
  ctx.respond = false
  ctx.res.writeHead(200, {
    'Content-Type': 'application/x-ndjson',
    'Cache-Control': 'no-store',
    // Otherwise nginx buffers lines.
    'X-Accel-Buffering': 'no',
  })
}

class RunningSearch {
  readonly #ctx: RouteContext
  readonly #parts: DownloadsParts
  readonly #asked: AskedSearch
  readonly #audit: SeenAudit
  /** Lines with addresses. */
  #found = 0
  /** How it ends if it does not reach its last line. */
  #outcome: SeenOutcome = 'refused'
  #error: unknown

  constructor(ctx: RouteContext, parts: DownloadsParts, asked: AskedSearch, audit: SeenAudit) {
    this.#ctx = ctx
    this.#parts = parts
    this.#asked = asked
    this.#audit = audit
  }

  async serve(): Promise<void> {
    const { question } = this.#asked
    const { revoked, bounds } = callerOf(this.#ctx)
    using leaving = requestSignal(this.#ctx)
    // What reads packets counts as a download.
    const quotas = question.verify ? bounds.quotas : []
    using use = await this.#parts.quotas.begin(this.#ctx.state.requestId, quotas)
    using ending = new JoinedSignal([leaving.signal, revoked, use.spent])
    const { signal } = ending
    try {
      await this.#audit.begin()
      await this.#send({ signal, onSent: (bytes) => use.sent(bytes) })
    } catch (error) {
      this.#error = error
      if (!this.#ctx.res.headersSent) throw error
    } finally {
      this.#ended(leaving.signal.aborted)
    }
  }

  async #send({
    signal,
    onSent,
  }: {
    readonly signal: AbortSignal
    onSent(bytes: number): void
  }): Promise<void> {
    const { state, res } = this.#ctx
    const { waitS, waitMaxS } = this.#parts.limits
    await using search = await this.#asked.begin({
      user: callerOf(this.#ctx).name,
      leaseId: state.requestId,
      waitMs: Math.min(this.#asked.waitS ?? waitS, waitMaxS) * 1_000,
      signal,
    })
    this.#outcome = 'cut'
    sendHead(this.#ctx)
    res.flushHeaders()
    await sendTexts(res, () => this.#texts(search, { signal, onSent }), [signal])
    res.end()
  }

  /** The last line is sent only after the end was recorded. */
  async *#texts(
    search: Search,
    { signal, onSent }: { readonly signal: AbortSignal; onSent(bytes: number): void },
  ): AsyncGenerator<string> {
    const text = (lines: readonly object[]): string => {
      const joined = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      onSent(Buffer.byteLength(joined))
      return joined
    }
    try {
      for await (const lines of search.lines) {
        this.#found += lines.filter((line) => 'address' in line).length
        yield text(lines)
      }
      signal.throwIfAborted()
      const { line, facts } = search.end()
      await this.#audit.end({ ...facts, found: this.#found })
      this.#outcome = facts.outcome === 'complete' ? 'complete' : 'incomplete'
      yield text([line])
    } catch (error) {
      this.#error = error
      if (!(error instanceof CapfleetError)) this.#parts.log.error('seen.failed', { err: error })
      yield text([{ error: shownFailure(error) }])
    }
  }

  #ended(isClientGone: boolean): void {
    const { question, members } = this.#asked
    const isWhole = this.#outcome === 'complete' || this.#outcome === 'incomplete'
    const outcome = !isWhole && isClientGone ? 'client-gone' : this.#outcome
    const error = this.#error instanceof CapfleetError ? this.#error.code : undefined
    const end = { found: this.#found, error } as const
    // Nothing waits for the audit of a search that did not end well.
    this.#audit.end({ ...end, outcome: isClientGone ? 'client-gone' : 'failed' }).catch(() => undefined)
    const { verify, texts } = question
    this.#parts.seen.outcomes.ended(outcome, { verify, addresses: texts.length })
    const { requestId, caller } = this.#ctx.state
    this.#parts.log.info('seen.ended', {
      requestId,
      user: caller?.name,
      outcome,
      verify,
      addresses: texts.length,
      devices: members.length,
      found: this.#found,
      code: error,
    })
  }
}

function shownFailure(error: unknown): { readonly code: string; readonly detail: string } {
  if (error instanceof CapfleetError) return { code: error.code, detail: error.message }
  return { code: 'internal-error', detail: 'the request hit an internal error; the log has the details' }
}
