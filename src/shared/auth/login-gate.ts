/**
 * What logins may cost. Looking at a password takes 20 ms of a core and 19 MiB on purpose, and it happens
 * on threads that files and compression need as well; so one password is looked at at a time, callers
 * take turns by address, and who was wrong too often is refused for a while without a look. Who is
 * refused is told by address and name together: nobody can lock a user out from elsewhere.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { CapfleetError } from '../base/error.ts'
import { FairLimit } from '../base/fair-limit.ts'
import type { Metrics } from '../base/metrics.ts'

export interface LoginSettings {
  /** Logins that may wait for their turn; a quarter of them of one address. */
  readonly waitingMax: number
  /** Wrong passwords for a name from an address, before it must pause. */
  readonly wrongMax: number
  /** The pause begins with a second and doubles with each further wrong password up to this. */
  readonly pauseMaxS: number
}

/** Who tries to log in. */
export interface LoginCaller {
  /** As caller-address.ts tells callers apart. */
  readonly address: string
  readonly name: string
}

/** An address may try this many times as many passwords as one name: many users can share an address. */
const NAMES_PER_ADDRESS = 10
/** Wrong passwords are forgotten when there was none for so long. */
const FORGET_MS = 600_000
/** A name that was right from an address this recently is not paused for what others do from there. */
const TRUST_MS = 30 * 86_400_000
const REMEMBERED_MAX = 10_000
const QUEUE_FULL_RETRY_S = 1
/** A refusal takes so long: who is refused and asks again at once costs little then. */
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
  readonly #failures = new LRUCache<string, Failures>({ max: REMEMBERED_MAX, ttl: FORGET_MS })
  /** Names that were right from an address: proxies and NAT have many users behind one address. */
  readonly #known = new LRUCache<string, true>({ max: REMEMBERED_MAX, ttl: TRUST_MS })
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

  /** What `look` says, in the caller's turn. Fails with too-many-logins, without a look but not at once. */
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
    if (!this.#turns.hasRoomFor(caller.address))
      throw this.#refusal('too many logins are already waiting', QUEUE_FULL_RETRY_S)
    using _turn = await this.#turns.acquire(UNTIL_DONE, caller.address)
    // Others of this caller may have been wrong while this one waited.
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
    const keys = this.#known.has(keyOf(caller)) ? [keyOf(caller)] : [keyOf(caller), caller.address]
    const ends = keys.map((key) => this.#failures.get(key)?.pauseEndMs ?? 0)
    const leftMs = Math.max(...ends) - performance.now()
    if (leftMs <= 0) return
    throw this.#refusal('too many wrong passwords were given', Math.ceil(leftMs / 1_000))
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

/** A look is short and always ends, and what it finds is worth knowing also when the caller has left. */
const UNTIL_DONE = new AbortController().signal

/** An address has no space. No user's name is longer than the part that is kept of it. */
function keyOf({ address, name }: LoginCaller): string {
  return `${address} ${name.slice(0, NAME_MAX)}`
}
