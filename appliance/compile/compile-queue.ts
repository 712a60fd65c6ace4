import { addAbortListener } from 'node:events'
import { LRUCache } from 'lru-cache'
import { CapfleetError, secondsText } from '../../src/shared/base/error.ts'
import type { LabelledCaller } from '../request/labelled-caller.ts'
import { type CompileHelper, type CompileOutcome, runHelper } from './compile-process.ts'

export interface CompileSettings {
  /** Maximum number of concurrent helpers. */
  readonly compilers: number
  /** Maximum number of filters waiting for one. */
  readonly waitingMax: number
  /** How long each of them waits. */
  readonly waitMs: number
  /** Wall-clock time limit of a helper. */
  readonly limitMs: number
}

/**
 * Shorter than a gateway's limits: `waitMs` is below its 3 s for a check, both together below its 15 s for the start
 * of a download.
 */
export const COMPILE_DEFAULTS: CompileSettings = {
  compilers: 3,
  waitingMax: 64,
  waitMs: 2_000,
  limitMs: 5_000,
}

export interface CompileJob {
  readonly helper: CompileHelper
  readonly input: Buffer
}

export interface CompileRequest {
  readonly caller: LabelledCaller
  /** Aborted when nobody is waiting for the outcome any more. */
  readonly signal: AbortSignal
}

/**
 * compiled, refused: the helper's verdict; late: it was killed; busy: a request was rejected; left: everyone waiting
 * for it had gone.
 */
export const COMPILE_RESULTS = ['compiled', 'refused', 'late', 'busy', 'left'] as const
export type CompileResult = (typeof COMPILE_RESULTS)[number]

const REMEMBERED_OUTCOMES = 256
const REMEMBERED_BYTES = 64 * 2 ** 20
/** Overhead of a cached outcome, so that small ones count too. */
const OUTCOME_BYTES = 1024
/** More than ever wait at the same time; a forgotten caller counts as never served. */
const REMEMBERED_CALLERS = 4_096
/**
 * One caller may have an eighth of the waiting places, one user (possibly a gateway with many callers) half of them.
 */
const CALLER_SHARE = 8
const USER_SHARE = 2

/** A request that has no outcome yet. */
interface Ticket {
  readonly key: string
  readonly job: CompileJob
  readonly caller: LabelledCaller
  readonly settle: PromiseWithResolvers<CompileOutcome>
}

/** A running helper. */
interface Run {
  readonly caller: LabelledCaller
  /** The requests waiting for its outcome. */
  readonly tickets: Set<Ticket>
  readonly abort: AbortController
}

/**
 * Distributes the compile helpers among callers, so that slow filters of one cannot delay another's. A caller has one
 * helper at a time, and a user never has all of them; whoever was served longest ago is next, first among users and
 * then among the callers of a user. Equal filters are compiled once for all concurrent requests, and a helper's
 * verdict is cached.
 */
export class CompileQueue {
  readonly #settings: CompileSettings
  readonly #runHelper: typeof runHelper
  readonly #counts: Record<CompileResult, number> = { compiled: 0, refused: 0, late: 0, busy: 0, left: 0 }
  /** In order of arrival. */
  readonly #waiting = new Set<Ticket>()
  readonly #running = new Set<Run>()
  /** The runs that an equal request may join, by key. */
  readonly #joinable = new Map<string, Run>()
  /** When users and callers were last served, in turns. */
  readonly #servedAt = new LRUCache<string, number>({ max: REMEMBERED_CALLERS })
  readonly #outcomes = new LRUCache<string, CompileOutcome>({
    max: REMEMBERED_OUTCOMES,
    maxSize: REMEMBERED_BYTES,
    sizeCalculation: (outcome) => OUTCOME_BYTES + ('output' in outcome ? outcome.output.byteLength : 0),
  })
  #turn = 0

  /** `run` is only passed by tests. */
  constructor(settings: CompileSettings = COMPILE_DEFAULTS, run: typeof runHelper = runHelper) {
    this.#settings = settings
    this.#runHelper = run
  }

  get running(): number {
    return this.#running.size
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Number of compilations so far by outcome. */
  get counts(): Readonly<Record<CompileResult, number>> {
    return this.#counts
  }

  /**
   * The helper's outcome for the input. Fails with compiler-busy if too many are waiting, none becomes free in time or
   * the helper is killed, or with the signal's reason.
   */
  async compile(job: CompileJob, { caller, signal }: CompileRequest): Promise<CompileOutcome> {
    signal.throwIfAborted()
    const key = `${job.helper.path}\n${job.input.toString('latin1')}`
    const known = this.#outcomes.get(key)
    if (known !== undefined) return known
    const ticket: Ticket = { key, job, caller, settle: Promise.withResolvers() }
    this.#admit(ticket)
    const giveUp = setTimeout(() => this.#giveUp(ticket), this.#settings.waitMs).unref()
    using _leave = addAbortListener(signal, () => this.#leave(ticket, signal.reason))
    try {
      return await ticket.settle.promise
    } finally {
      clearTimeout(giveUp)
    }
  }

  #admit(ticket: Ticket): void {
    const equal = this.#joinable.get(ticket.key)
    if (equal !== undefined) {
      equal.tickets.add(ticket)
      return
    }
    this.#waiting.add(ticket)
    this.#startNext()
    if (!this.#waiting.has(ticket) || this.#hasRoomFor(ticket)) return
    this.#waiting.delete(ticket)
    throw this.#busy('too many filters are already waiting to be compiled')
  }

  /** Whether the waiting ticket keeps the queue, and its caller's and user's share of it, within the limits. */
  #hasRoomFor({ caller: { id, user } }: Ticket): boolean {
    const { waitingMax } = this.#settings
    const callers = [...this.#waiting].map(({ caller }) => caller)
    return (
      callers.length <= waitingMax &&
      callers.filter((caller) => caller.user === user).length <= Math.ceil(waitingMax / USER_SHARE) &&
      callers.filter((caller) => caller.id === id).length <= Math.ceil(waitingMax / CALLER_SHARE)
    )
  }

  /** Has no effect on a running compilation, which has its own time limit. */
  #giveUp(ticket: Ticket): void {
    if (this.#waiting.delete(ticket))
      ticket.settle.reject(this.#busy(`no compiler became free within ${secondsText(this.#settings.waitMs)}`))
  }

  #leave(ticket: Ticket, reason: unknown): void {
    this.#waiting.delete(ticket)
    const run = this.#joinable.get(ticket.key)
    if (run?.tickets.delete(ticket) && run.tickets.size === 0) {
      this.#joinable.delete(ticket.key)
      run.abort.abort(reason)
    }
    ticket.settle.reject(reason)
  }

  #startNext(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) void this.#run(next)
  }

  /** The next ticket to serve, or undefined if none may be served now. */
  #next(): Ticket | undefined {
    if (this.#running.size >= this.#settings.compilers) return undefined
    let next: Ticket | undefined
    for (const ticket of this.#waiting) {
      if (this.#mayRun(ticket.caller) && (next === undefined || this.#goesBefore(ticket.caller, next.caller)))
        next = ticket
    }
    return next
  }

  /** The last helper is reserved for other users, unless there is only one. */
  #mayRun({ id, user }: LabelledCaller): boolean {
    const callers = [...this.#running].map(({ caller }) => caller)
    if (callers.some((caller) => caller.id === id)) return false
    return callers.filter((caller) => caller.user === user).length < Math.max(1, this.#settings.compilers - 1)
  }

  #goesBefore(a: LabelledCaller, b: LabelledCaller): boolean {
    const served = (name: string): number => this.#servedAt.get(name) ?? 0
    if (a.user !== b.user) return served(a.user) < served(b.user)
    return served(a.id) < served(b.id)
  }

  /** Compiles for the ticket and for all equal ones. Never rejects. */
  async #run({ key, job, caller }: Ticket): Promise<void> {
    const tickets = new Set([...this.#waiting].filter((ticket) => ticket.key === key))
    const run: Run = { caller, tickets, abort: new AbortController() }
    for (const ticket of tickets) this.#waiting.delete(ticket)
    this.#running.add(run)
    this.#joinable.set(key, run)
    this.#turn += 1
    this.#servedAt.set(caller.user, this.#turn)
    this.#servedAt.set(caller.id, this.#turn)
    const { limitMs } = this.#settings
    try {
      const outcome = await this.#runHelper(job.helper, job.input, { limitMs, signal: run.abort.signal })
      this.#outcomes.set(key, outcome)
      this.#counts['output' in outcome ? 'compiled' : 'refused'] += 1
      for (const { settle } of tickets) settle.resolve(outcome)
    } catch (error) {
      this.#counts[run.abort.signal.aborted ? 'left' : 'late'] += 1
      for (const { settle } of tickets) settle.reject(error)
    }
    this.#running.delete(run)
    if (this.#joinable.get(key) === run) this.#joinable.delete(key)
    this.#startNext()
  }

  #busy(what: string): CapfleetError {
    this.#counts.busy += 1
    return new CapfleetError('compiler-busy', `${what}; try again`, {
      retryAfterS: Math.ceil(this.#settings.waitMs / 1000),
    })
  }
}
