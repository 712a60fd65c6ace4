import { CapfleetError } from '../base/error.ts'
import { nearestNames } from './nearest-names.ts'
import { parseQueryString } from './parse-query-string.ts'

/** The parameters of one request, taken one by one; what nobody took is unknown. */
export class QueryParameters {
  readonly #values: ReadonlyMap<string, string>
  readonly #known = new Set<string>()

  /** `raw` is the query string without "?". Fails as parseQueryString does. */
  constructor(raw: string) {
    this.#values = parseQueryString(raw)
  }

  /** The value, undefined when absent. The name is known from now on. */
  take(name: string): string | undefined {
    this.#known.add(name)
    return this.#values.get(name)
  }

  /** The value of a parameter that the request must have. */
  require(name: string): string {
    const value = this.take(name)
    if (value !== undefined && value !== '') return value
    const similar = this.unknown().find((other) => other.toLowerCase() === name.toLowerCase())
    const hint = similar === undefined ? '' : ` ("${similar}" was given; upper and lower case matter)`
    throw badParameter(name, `is missing${hint}; add ${name}=...`)
  }

  /**
   * Fails with bad-parameter for a name that differs from one that is known by now in upper and lower case only.
   * For what changes something: there a misspelt parameter must not be passed over.
   */
  refuseMiscased(): void {
    for (const name of this.unknown()) {
      const known = [...this.#known].find((other) => other.toLowerCase() === name.toLowerCase())
      if (known !== undefined) throw badParameter(name, `is spelt ${known}; upper and lower case matter`)
    }
  }

  /** The value as take() has it, but an empty one is none: scripts pass an unset variable. */
  #takeFilled(name: string): string | undefined {
    return this.take(name) || undefined
  }

  /** An integer `^\d+(ULL)?$` from `min` to `max`; an empty value is none, here and below. */
  takeInteger(name: string, min: bigint, max: bigint): bigint | undefined {
    const text = this.#takeFilled(name)
    if (text === undefined) return undefined
    const value = /^\d{1,20}(ULL)?$/.test(text) ? BigInt(text.replace('ULL', '')) : undefined
    if (value === undefined || value < min || value > max) {
      throw badParameter(name, `must be an integer from ${min} to ${max}, got ${quote(text)}`)
    }
    return value
  }

  /** One of `choices`, exactly as spelled there. */
  takeChoice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    const text = this.#takeFilled(name)
    if (text === undefined) return undefined
    const choice = choices.find((word) => word === text)
    if (choice === undefined) {
      throw badParameter(name, `must be one of ${choices.join(', ')}, got ${quote(text)}`)
    }
    return choice
  }

  /** A switch: 1 or true, 0 or false. */
  takeSwitch(name: string): boolean | undefined {
    const text = this.takeChoice(name, ['1', '0', 'true', 'false'])
    return text === undefined ? undefined : text === '1' || text === 'true'
  }

  /** Names that nobody has taken so far. */
  unknown(): string[] {
    return [...this.#values.keys()].filter((name) => !this.#known.has(name))
  }

  /**
   * Ends the reading: the names left over, for Capfleet-Ignored. Takes `Strict` (1 makes a name left
   * over an error) and `rand`, which links carry to defeat caches.
   */
  finish(): readonly string[] {
    this.take('rand')
    const strict = this.takeSwitch('Strict') ?? false
    const unknown = this.unknown()
    const [first] = unknown
    if (!strict || first === undefined) return unknown
    const near = nearestNames(first, this.#known)
    const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`
    throw badParameter(first, `is not a parameter of this path${hint}`)
  }
}

/** A complaint about one parameter: "<name> <problem>". */
export function badParameter(name: string, problem: string, position?: number): CapfleetError {
  return new CapfleetError('bad-parameter', `${name} ${problem}`, { param: name, position })
}

/** A caller's text inside a message, bounded in length. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text)
}
