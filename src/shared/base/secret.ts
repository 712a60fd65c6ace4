import { inspect } from 'node:util'

const SHOWN = '[redacted]'

/**
 * A text that nobody may see: however it is printed, logged or made JSON of, it is not there. It is revealed
 * only where it goes on the wire.
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
