/**
 * Limits the cost of logins. Verifying a password deliberately takes 20 ms of CPU and 19 MiB, on threads that files
 * and compression need as well. So one password is verified at a time, callers take turns, and anyone who was wrong too
 * often is rejected for a while without verification. Rejection depends on address and name together, so that a user
 * cannot be locked out from elsewhere. All callers of an address share its turns, except names that have logged in from
 * there: these have turns of their own, so that a flood of guesses through a proxy does not make them wait.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { CapfleetError } from '../base/error.ts'
import { FairLimit } from '../base/fair-limit.ts'
import type { Metrics } from '../base/metrics.ts'

export interface LoginSettings {
  /** Number of logins that may wait for their turn; a single address, or a name known there, may have a quarter of them. */
  readonly waitingMax: number
  /** Number of wrong passwords for a name from an address before it must pause. */
  readonly wrongMax: number
  /** The pause starts at one second and doubles with each further wrong password, up to this. */
  readonly pauseMaxS: number
}

/** Someone who tries to log in. */
export interface LoginCaller {
  /** Client address in the form that caller-address.ts uses to tell callers apart. */
  readonly address: string
  readonly name: string
}

/** An address may try this many times as many passwords as one name, because many users can share an address. */
const NAMES_PER_ADDRESS = 10
/** Wrong passwords are forgotten after this long without another one. */
const FORGET_MS = 600_000
/** A name that logged in from an address this recently is not paused for what others do from there. */
const TRUST_MS = 30 * 86_400_000
/** At most this many; with `max` the table would have its full size from the start. */
const REMEMBERED = { maxSize: 10_000, sizeCalculation: () => 1 }
const QUEUE_FULL_RETRY_S = 1
/** Rejections are delayed by this, so that clients which retry at once cost little. */
const REFUSAL_MS = 1_000
const NAME_MAX = 64

interface Failures {
  wrong: number
  /** performance.now() */
  pauseEndMs: number
}

type LoginResult = 'right' | 'wrong' | 'refused'

export class LoginGate {
  readonly #settings: LoginSettings
  readonly #turns: FairLimit
  readonly #failures = new LRUCache<string, Failures>({ ...REMEMBERED, ttl: FORGET_MS })
  /** Names that have logged in from an address: proxies and NAT have many users behind one address. */
  readonly #known = new LRUCache<string, true>({ ...REMEMBERED, ttl: TRUST_MS })
  readonly #count: (result: LoginResult) => void

  constructor(settings: LoginSettings, metrics: Metrics) {
    const { waitingMax } = settings
    this.#settings = settings
    this.#turns = new FairLimit({
      places: 1,
      waitingMax,
      waitingPerUserMax: Math.ceil(waitingMax / 4),
    })
    const logins = metrics.counter(
      'logins_total',
      'Passwords that were checked, and logins rejected without a check, by result',
      ['result'],
      [{ result: 'right' }, { result: 'wrong' }, { result: 'refused' }],
    )
    this.#count = (result) => logins.inc({ result })
    metrics.gauge('logins_waiting', 'Logins waiting to be checked', [], (gauge) =>
      gauge.set(this.#turns.waiting),
    )
  }

  /**
   * Returns what `look` returns, called in the caller's turn. Fails with too-many-logins, after a delay but without
   * calling it.
   */
  async verify(caller: LoginCaller, look: () => Promise<boolean>): Promise<boolean> {
    try {
      return await this.#verify(caller, look)
    } catch (error) {
      await delay(REFUSAL_MS)
      throw error
    }
  }

  async #verify(caller: LoginCaller, look: () => Promise<boolean>): Promise<boolean> {
    this.#refuseInPause(caller)
    const queue = this.#isKnown(caller) ? keyOf(caller) : caller.address
    if (!this.#turns.hasRoomFor(queue))
      throw this.#refusal('too many logins are already waiting', QUEUE_FULL_RETRY_S)
    using _turn = await this.#turns.acquire(UNTIL_DONE, queue)
    // Other logins of this caller may have failed while this one waited.
    this.#refuseInPause(caller)
    const isRight = await look()
    this.#count(isRight ? 'right' : 'wrong')
    if (isRight) {
      this.#failures.delete(keyOf(caller))
      this.#known.set(keyOf(caller), true)
    } else this.#remember(caller)
    return isRight
  }

  #refuseInPause(caller: LoginCaller): void {
    const keys = this.#isKnown(caller) ? [keyOf(caller)] : [keyOf(caller), caller.address]
    const ends = keys.map((key) => this.#failures.get(key)?.pauseEndMs ?? 0)
    const leftMs = Math.max(...ends) - performance.now()
    if (leftMs <= 0) return
    throw this.#refusal('too many wrong passwords were given', Math.ceil(leftMs / 1_000))
  }

  #isKnown(caller: LoginCaller): boolean {
    return this.#known.has(keyOf(caller))
  }

  #refusal(reason: string, retryAfterS: number): CapfleetError {
    this.#count('refused')
    return new CapfleetError('too-many-logins', `${reason}; try again in ${retryAfterS} s`, { retryAfterS })
  }

  #remember(caller: LoginCaller): void {
    const { wrongMax } = this.#settings
    this.#addWrong(keyOf(caller), wrongMax)
    this.#addWrong(caller.address, wrongMax * NAMES_PER_ADDRESS)
  }

  #addWrong(key: string, wrongMax: number): void {
    const failures = this.#failures.get(key) ?? { wrong: 0, pauseEndMs: 0 }
    failures.wrong += 1
    const beyond = failures.wrong - wrongMax
    const pauseS = beyond < 0 ? 0 : Math.min(2 ** Math.min(beyond, 20), this.#settings.pauseMaxS)
    failures.pauseEndMs = performance.now() + pauseS * 1_000
    this.#failures.set(key, failures)
  }
}

/** Verification is short and always ends, and its result is useful even if the caller has left. */
const UNTIL_DONE = new AbortController().signal

/** An address contains no space. No user name is longer than the part that is kept. */
function keyOf({ address, name }: LoginCaller): string {
  return `${address} ${name.slice(0, NAME_MAX)}`
}
