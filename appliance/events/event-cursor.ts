import { formatEvent } from '../../src/shared/http/server-sent-events.ts'
import type { EventFeed } from './event-feed.ts'

type Feed = Pick<EventFeed, 'newestId' | 'firstAfter'>

/** Where a client stands in the events, and what comes next for it as server-sent events. */
export class EventCursor {
  readonly #feed: Feed
  /** Number of the event that the client saw last. */
  #seenId: number
  /** What comes next lies behind this. */
  #positionId: number

  /** Without `seenId` it begins with what happens from now on; 0 = with the oldest event there is. */
  constructor(feed: Feed, seenId: number = feed.newestId) {
    this.#feed = feed
    this.#seenId = seenId
    // An id from another store's future would keep everything back.
    this.#positionId = Math.min(seenId, feed.newestId)
  }

  /**
   * The next event, undefined when there is none yet. An event names the one before it: if that is
   * not what the client saw last, others lie between that are not there any more, and a "gap" comes
   * first. It has no id: whoever breaks off behind it is told again.
   */
  next(): string | undefined {
    const event = this.#feed.firstAfter(this.#positionId)
    if (event === undefined) return undefined
    const { id, after, data } = event
    const isGap = after !== this.#seenId
    const gap = isGap
      ? formatEvent('gap', JSON.stringify({ After: String(this.#seenId), Next: String(id), TS: data.TS }))
      : ''
    this.#seenId = id
    this.#positionId = id
    return gap + formatEvent(data.Kind, JSON.stringify(data), id)
  }
}
