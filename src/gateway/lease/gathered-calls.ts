interface Waiting<Ask, Answer> {
  readonly ask: Ask
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/**
 * Batches requests into few calls: the first is sent at once; those that arrive while calls are in progress are sent
 * together when the last of these has ended, or once there are `most` of them. Order is preserved and each request has
 * its own answer; if a call fails, all of its requests fail.
 */
export class GatheredCalls<Ask, Answer> {
  readonly #call: (asks: readonly Ask[]) => Promise<readonly Answer[]>
  readonly #most: number
  #waiting: Waiting<Ask, Answer>[] = []
  #underWay = 0

  /** `call` must return as many answers as there are requests, in the same order. */
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
