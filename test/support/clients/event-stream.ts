/** Reads a stream of server-sent events. */
import type { OpenAnswer } from '../http-get.ts'

export interface ServerSentEvent {
  /** Empty if it has none. */
  readonly id: string
  readonly event: string
  readonly data: Readonly<Record<string, unknown>>
}

export class EventStream implements Disposable {
  readonly #answer: OpenAnswer
  readonly #texts: AsyncIterator<string>
  #rest = ''
  /** Comments and other lines that are not events, in order. */
  readonly others: string[] = []

  constructor(answer: OpenAnswer) {
    this.#answer = answer
    this.#texts = answer.response.setEncoding('utf8')[Symbol.asyncIterator]() as AsyncIterator<string>
  }

  /** The next event, or undefined at the end of the stream. Rejects if it was cut. */
  async next(): Promise<ServerSentEvent | undefined> {
    for (;;) {
      const end = this.#rest.indexOf('\n\n')
      if (end < 0) {
        const { done, value } = await this.#texts.next()
        if (done === true) return undefined
        this.#rest += value
        continue
      }
      const block = this.#rest.slice(0, end)
      this.#rest = this.#rest.slice(end + 2)
      if (/^event: /m.test(block)) return parseBlock(block)
      this.others.push(block)
    }
  }

  /** The next `count` events. */
  async take(count: number): Promise<ServerSentEvent[]> {
    const events: ServerSentEvent[] = []
    while (events.length < count) {
      const event = await this.next()
      if (event === undefined) throw new Error(`the stream ended after ${events.length} of ${count} events`)
      events.push(event)
    }
    return events
  }

  [Symbol.dispose](): void {
    this.#answer[Symbol.dispose]()
  }
}

function parseBlock(block: string): ServerSentEvent {
  const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? ''
  return { id: field('id'), event: field('event'), data: JSON.parse(field('data')) }
}
