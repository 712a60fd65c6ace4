/** A group of the system status: its members in order, and which of them this machine cannot tell. */

export type Reading = number | bigint | boolean | string

/** What a member has when nothing can be read: the value that keeps its type. */
export type Absent = 0 | false | ''

export class GroupBuilder {
  readonly #members: Record<string, Reading> = {}
  readonly #unavailable: string[] = []

  /** A member that is always known. */
  set(name: string, value: Reading): this {
    this.#members[name] = value
    return this
  }

  /** A member that a sensor tells: `absent` and a mention in `unavailable` when it does not. */
  read(name: string, value: Reading | undefined, absent: Absent): this {
    if (value === undefined) this.#unavailable.push(name)
    return this.set(name, value ?? absent)
  }

  /** Members, then `unavailable`. */
  build(): StatusGroup {
    return { ...this.#members, unavailable: this.#unavailable }
  }
}

export type StatusGroup = Readonly<Record<string, Reading | readonly string[]>>
