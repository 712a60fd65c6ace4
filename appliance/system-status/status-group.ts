/** A group of the system status: its members in order, and which of them this machine cannot provide. */

export type Reading = number | bigint | boolean | string

/** The value of a member that cannot be read, which keeps its type. */
export type Absent = 0 | false | ''

export class GroupBuilder {
  readonly #members: Record<string, Reading> = {}
  readonly #unavailable: string[] = []

  /** Adds a member that is always known. */
  set(name: string, value: Reading): this {
    this.#members[name] = value
    return this
  }

  /** Adds a member from a sensor: `absent`, listed in `unavailable`, if there is no value. */
  read(name: string, value: Reading | undefined, absent: Absent): this {
    if (value === undefined) this.#unavailable.push(name)
    return this.set(name, value ?? absent)
  }

  /** Returns the members, then `unavailable`. */
  build(): StatusGroup {
    return { ...this.#members, unavailable: this.#unavailable }
  }
}

export type StatusGroup = Readonly<Record<string, Reading | readonly string[]>>
