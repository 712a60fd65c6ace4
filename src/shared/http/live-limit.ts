import { CapfleetError } from '../base/error.ts'

export interface LiveSettings {
  /** How many clients follow at once. Each costs a little memory and, with telemetry, a little time every second. */
  readonly clientsMax: number
  /** How many of them may be one caller's. */
  readonly callerClientsMax: number
}

/** Who follows. */
export interface LiveCaller {
  /** Whose credentials came with the request. */
  readonly user: string
  /** The same for all requests of one caller, of whom several may come under one user's credentials. */
  readonly id: string
}

export const LIVE_DEFAULTS: LiveSettings = { clientsMax: 64, callerClientsMax: 8 }

const RETRY_AFTER_S = 10
/** One user, who may be a gateway with many callers, has half of the places: the other half is for others. */
const USER_SHARE = 2

/** How many clients may follow what happens at once, so that nobody keeps others from it. */
export class LiveLimit {
  readonly #settings: LiveSettings
  readonly #places = new Set<{ readonly caller: LiveCaller }>()

  constructor(settings: LiveSettings = LIVE_DEFAULTS) {
    this.#settings = settings
  }

  get used(): number {
    return this.#places.size
  }

  /** A place until dispose. Fails with event-streams-exhausted when none is free, or none for this caller. */
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
