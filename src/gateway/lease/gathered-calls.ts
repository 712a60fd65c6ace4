interface Waiting<Ask, Answer> {
  readonly ask: Ask
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/**
 * Asks for many things in few calls: the first at once, those that come while calls are under way
 * together when the last of them has ended, or as soon as they are `most`. They are sent in the order
 * in which they came, and each has its own answer; a call that fails fails all that it asked for.
 */
export class GatheredCalls<Ask, Answer> {
  readonly #call: (asks: readonly Ask[]) => Promise<readonly Answer[]>
  readonly #most: number
  #waiting: Waiting<Ask, Answer>[] = []
  #underWay = 0

  /** `call` gives as many answers as it is asked for, in the same order. */
  constructor(call: (asks: readonly Ask[]) => Promise<readonly Answer[]>, most: number) {
    this.#call = call
    this.#most = most
  }

  ask(ask: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ask, resolve, reject })
      if (this.#underWay === 0 || this.#waiting.length === this.#most) void this.#send()
    })
  }

  /** Never fails. */
  async #send(): Promise<void> {
    const sent = this.#waiting
    this.#waiting = []
    this.#underWay += 1
    try {
      const answers = await this.#call(sent.map(({ ask }) => ask))
      for (const [i, { resolve }] of sent.entries()) resolve(answers[i] as Answer)
    } catch (error) {
      for (const { reject } of sent) reject(error)
    }
    this.#underWay -= 1
    if (this.#underWay === 0 && this.#waiting.length > 0) void this.#send()
  }
}
