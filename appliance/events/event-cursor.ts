import { formatEvent } from '../../src/shared/http/server-sent-events.ts'
import type { EventFeed } from './event-feed.ts'

type Feed = Pick<EventFeed, 'newestId' | 'firstAfter'>

/** A client's position in the events, which returns the next ones as server-sent events. */
export class EventCursor {
  readonly #feed: Feed
  /** Number of the last event that the client has seen. */
  #seenId: number
  /** The next event comes after this number. */
  #positionId: number

  /** Without `seenId` it begins with events from now on; 0 = with the oldest event there is. */
  constructor(feed: Feed, seenId: number = feed.newestId) {
    this.#feed = feed
    this.#seenId = seenId
    // An id from another store that is in the future would hold everything back.
    this.#positionId = Math.min(seenId, feed.newestId)
  }

  /**
   * The next event, or undefined if there is none yet. An event names its predecessor: if that is not the last one the
   * client has seen, events in between no longer exist, and a "gap" is sent first. The gap has no id: a client that
   * disconnects after it receives it again.
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
