import { CapfleetError } from '../base/error.ts'

export interface LiveSettings {
  /** Maximum number of followers. Each costs a little memory and, with telemetry, a little time every second. */
  readonly clientsMax: number
  /** Maximum share of a single caller. */
  readonly callerClientsMax: number
}

/** The caller of a live answer. */
export interface LiveCaller {
  /** The user whose credentials came with the request. */
  readonly user: string
  /** The same for all requests of one caller; several callers may use one user's credentials. */
  readonly id: string
}

/** The error if there is no place; `who` has them all. */
export type LiveRefusal = (who: string) => CapfleetError

export const LIVE_DEFAULTS: LiveSettings = { clientsMax: 64, callerClientsMax: 8 }

const RETRY_AFTER_S = 10
/** One user, who may be a gateway with many callers, gets at most half of the places. */
const USER_SHARE = 2

/** Limits how many clients may follow live answers, so that nobody can block others. */
export class LiveLimit {
  readonly #settings: LiveSettings
  readonly #refusal: LiveRefusal
  readonly #places = new Set<{ readonly caller: LiveCaller }>()

  constructor(settings: LiveSettings = LIVE_DEFAULTS, refusal: LiveRefusal = exhausted) {
    this.#settings = settings
    this.#refusal = refusal
  }

  get used(): number {
    return this.#places.size
  }

  /** A place until disposed. Fails with event-streams-exhausted, or its own refusal, if none is free, or none for this caller. */
  take(caller: LiveCaller): Disposable {
    const { clientsMax, callerClientsMax } = this.#settings
    if (this.#places.size >= clientsMax) throw this.#refusal(`${clientsMax} clients`)
    const mine = [...this.#places].filter((place) => place.caller.id === caller.id)
    if (mine.length >= callerClientsMax) throw this.#refusal(`${callerClientsMax} of your clients`)
    const users = [...this.#places].filter((place) => place.caller.user === caller.user)
    const userMax = Math.max(callerClientsMax, Math.ceil(clientsMax / USER_SHARE))
    if (users.length >= userMax) throw this.#refusal(`${userMax} clients under this user`)
    const place = { caller }
    this.#places.add(place)
    return { [Symbol.dispose]: () => void this.#places.delete(place) }
  }
}

function exhausted(who: string): CapfleetError {
  return new CapfleetError(
    'event-streams-exhausted',
    `${who} follow events or telemetry already; end one of them or try again later`,
    { retryAfterS: RETRY_AFTER_S },
  )
}
