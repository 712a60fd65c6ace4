/**
 * Answers in lines that are sent while devices work: of searches for addresses, and of counts. The last line is sent only
 * after the end was recorded in the audit.
 */
import { CapfleetError } from '../../../shared/base/error.ts'
import { JoinedSignal } from '../../../shared/base/joined-signal.ts'
import { sendTexts } from '../../../shared/http/live-answer.ts'
import type { LineRequest, LineSource } from '../../fetch/lines/line-answer.ts'
import { planFacts } from '../../fleet/plan/plan-facts.ts'
import type { BoundedQuery } from '../../fleet/plan/within-bounds.ts'
import { actorOf } from '../request/audited.ts'
import { refuseBadFilters } from '../request/check-download.ts'
import { callerOf, requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { DownloadsParts } from './downloads-parts.ts'
import { LinesAudit } from './lines-audit.ts'
import type { LinesOutcome } from './lines-outcomes.ts'

/** All lines but the last one, which is known when they were read. */
export interface AnswerLines extends AsyncDisposable {
  readonly lines: AsyncIterable<readonly object[]>
  end(): LinesEnd
}

export interface LinesEnd {
  readonly line: object
  readonly complete: boolean
  /** What the audit records of the end. */
  readonly facts: object
}

export interface AskedLines {
  /** The name of its events in audit and log: NAME.begin, NAME.end. */
  readonly name: 'seen' | 'count'
  readonly devices: readonly string[]
  readonly query: BoundedQuery
  /** Whether devices read packets: it then counts as a download. */
  readonly readsPackets: boolean
  /** How long to wait for a stream; undefined: as configured. */
  readonly waitS: number | undefined
  /** Fails before the first byte. */
  readonly begin: (request: LineRequest) => Promise<AnswerLines>
  /** What the audit records of the question, in addition to its query and devices. */
  readonly details: object
  /** Called with the lines before they are sent. */
  readonly onLines?: (lines: readonly object[]) => void
  /** What was sent so far, for audit and log. */
  readonly facts: () => object
  /** What the log says of the question. */
  readonly logged: object
  readonly ended: (outcome: LinesOutcome) => void
}

/** The answer of a fleet, whose failures are lines. */
export function linesOfFleet(
  fleet: {
    lines(request: LineRequest): AsyncIterable<readonly object[]>
    end(): { readonly complete: boolean; readonly unanswered: string[]; readonly partial: string[] }
  },
  request: LineRequest,
): AnswerLines {
  return {
    lines: fleet.lines(request),
    end: () => {
      const line = fleet.end()
      const { complete, unanswered, partial } = line
      return { line, complete, facts: { unanswered, partial } }
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** The answer of one device, as it sends it. */
export function linesOfDevice<Line extends object>(source: LineSource<Line>): AnswerLines {
  let end: object | undefined
  const lines = async function* () {
    for await (const lines of source.lines()) {
      end = lines.find((line) => 'end' in line)
      const others = lines.filter((line) => !('end' in line))
      if (others.length > 0) yield others
    }
  }
  return {
    lines: lines(),
    end: () => ({
      line: end ?? {},
      complete: end !== undefined && 'complete' in end && end.complete === true,
      facts: {},
    }),
    [Symbol.asyncDispose]: () => source[Symbol.asyncDispose](),
  }
}

export async function answerLines(
  ctx: RouteContext,
  parts: DownloadsParts,
  asked: AskedLines,
): Promise<void> {
  const { devices, query } = asked
  await parts.downloads.fleet.knowKinds(devices)
  await refuseBadFilters(ctx, { query, steps: devices.map((device) => ({ device })) }, parts)
  if (ctx.method === 'HEAD') {
    sendHead(ctx)
    ctx.res.end()
    return
  }
  await new RunningAnswer(ctx, parts, asked).serve()
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

interface Sending {
  /** Ends the answer. */
  readonly signal: AbortSignal
  /** Ends the questions to devices, also because someone cancelled them, which the answer then says. */
  readonly asking: AbortSignal
  onSent(bytes: number): void
}

class RunningAnswer {
  readonly #ctx: RouteContext
  readonly #parts: DownloadsParts
  readonly #asked: AskedLines
  readonly #audit: LinesAudit
  /** How it ends if it does not reach its last line. */
  #outcome: LinesOutcome = 'refused'
  #error: unknown

  constructor(ctx: RouteContext, parts: DownloadsParts, asked: AskedLines) {
    this.#ctx = ctx
    this.#parts = parts
    this.#asked = asked
    const { name, devices, query, details } = asked
    this.#audit = new LinesAudit(parts.audit, {
      actor: actorOf(ctx),
      events: { begin: `${name}.begin`, end: `${name}.end` },
      devices,
      details: { ...planFacts(query, devices), ...details, path: ctx.path },
    })
  }

  async serve(): Promise<void> {
    const { revoked, bounds } = callerOf(this.#ctx)
    using leaving = requestSignal(this.#ctx)
    // What reads packets counts as a download.
    const quotas = this.#asked.readsPackets ? bounds.quotas : []
    using use = await this.#parts.quotas.begin(this.#ctx.state.requestId, quotas)
    using ending = new JoinedSignal([leaving.signal, revoked, use.spent])
    const { signal } = ending
    try {
      await this.#audit.begin()
      await using running = this.#asked.readsPackets ? await this.#inQueue() : undefined
      const cancelled = running === undefined ? [] : [running.cancelled]
      using asking = new JoinedSignal([signal, ...cancelled])
      await this.#send({ signal, asking: asking.signal, onSent: (bytes) => use.sent(bytes) })
    } catch (error) {
      this.#error = error
      if (!this.#ctx.res.headersSent) throw error
    } finally {
      this.#ended(leaving.signal.aborted)
    }
  }

  /** The queue shows it from now on. */
  #inQueue() {
    const { query, devices } = this.#asked
    const id = this.#ctx.state.requestId
    return this.#parts.questions.begin({ id, user: callerOf(this.#ctx).name, query, devices })
  }

  async #send(sending: Sending): Promise<void> {
    const { state, res } = this.#ctx
    const { waitS, waitMaxS } = this.#parts.limits
    const { signal, asking } = sending
    await using answer = await this.#asked.begin({
      user: callerOf(this.#ctx).name,
      leaseId: state.requestId,
      waitMs: Math.min(this.#asked.waitS ?? waitS, waitMaxS) * 1_000,
      signal: asking,
    })
    this.#outcome = 'cut'
    sendHead(this.#ctx)
    res.flushHeaders()
    await sendTexts(res, () => this.#texts(answer, sending), [signal])
    res.end()
  }

  async *#texts(answer: AnswerLines, { asking, onSent }: Sending): AsyncGenerator<string> {
    const text = (lines: readonly object[]): string => {
      const joined = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      onSent(Buffer.byteLength(joined))
      return joined
    }
    try {
      for await (const lines of answer.lines) {
        this.#asked.onLines?.(lines)
        yield text(lines)
      }
      asking.throwIfAborted()
      const { line, complete, facts } = answer.end()
      const outcome = complete ? 'complete' : 'incomplete'
      await this.#audit.end({ outcome, ...this.#asked.facts(), ...facts })
      this.#outcome = outcome
      yield text([line])
    } catch (error) {
      this.#error = error
      if (!(error instanceof CapfleetError))
        this.#parts.log.error(`${this.#asked.name}.failed`, { err: error })
      yield text([{ error: shownFailure(error) }])
    }
  }

  #ended(isClientGone: boolean): void {
    const { name, devices, facts, logged, ended } = this.#asked
    const isWhole = this.#outcome === 'complete' || this.#outcome === 'incomplete'
    const outcome = !isWhole && isClientGone ? 'client-gone' : this.#outcome
    const error = this.#error instanceof CapfleetError ? this.#error.code : undefined
    // Nothing waits for the audit of an answer that did not end well.
    this.#audit
      .end({ outcome: isClientGone ? 'client-gone' : 'failed', ...facts(), error })
      .catch(() => undefined)
    ended(outcome)
    const { requestId, caller } = this.#ctx.state
    this.#parts.log.info(`${name}.ended`, {
      requestId,
      user: caller?.name,
      outcome,
      ...logged,
      devices: devices.length,
      ...facts(),
      code: error,
    })
  }
}

function shownFailure(error: unknown): { readonly code: string; readonly detail: string } {
  if (error instanceof CapfleetError) return { code: error.code, detail: error.message }
  return { code: 'internal-error', detail: 'the request hit an internal error; the log has the details' }
}
