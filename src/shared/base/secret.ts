import { inspect } from 'node:util'

const SHOWN = '[redacted]'

/**
 * A secret text that does not appear when it is printed, logged or serialized as JSON. It is only revealed where it is
 * sent.
 */
export class Secret {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  reveal(): string {
    return this.#text
  }

  toString(): string {
    return SHOWN
  }

  toJSON(): string {
    return SHOWN
  }

  [inspect.custom](): string {
    return SHOWN
  }
}
