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

export const LIVE_DEFAULTS: LiveSettings = { clientsMax: 64, callerClientsMax: 8 }

const RETRY_AFTER_S = 10
/** One user, who may be a gateway with many callers, gets at most half of the places. */
const USER_SHARE = 2

/** Limits how many clients may follow live answers, so that nobody can block others. */
export class LiveLimit {
  readonly #settings: LiveSettings
  readonly #places = new Set<{ readonly caller: LiveCaller }>()

  constructor(settings: LiveSettings = LIVE_DEFAULTS) {
    this.#settings = settings
  }

  get used(): number {
    return this.#places.size
  }

  /** A place until disposed. Fails with event-streams-exhausted if none is free, or none for this caller. */
  take(caller: LiveCaller): Disposable {
    const { clientsMax, callerClientsMax } = this.#settings
    if (this.#places.size >= clientsMax) throw exhausted(`${clientsMax} clients follow`)
    const mine = [...this.#places].filter((place) => place.caller.id === caller.id)
    if (mine.length >= callerClientsMax) throw exhausted(`${callerClientsMax} of your clients follow`)
    const users = [...this.#places].filter((place) => place.caller.user === caller.user)
    const userMax = Math.max(callerClientsMax, Math.ceil(clientsMax / USER_SHARE))
    if (users.length >= userMax) throw exhausted(`${userMax} clients under this user follow`)
    const place = { caller }
    this.#places.add(place)
    return { [Symbol.dispose]: () => void this.#places.delete(place) }
  }
}

function exhausted(who: string): CapfleetError {
  return new CapfleetError(
    'event-streams-exhausted',
    `${who} events or telemetry already; end one of them or try again later`,
    { retryAfterS: RETRY_AFTER_S },
  )
}
