/** A request for a part of one device's list, and the captures that answer it. */
import { listTimeText } from '../../../shared/query/time/list-times.ts'
import { TIME_LIMIT_NS } from '../../../shared/query/time/query-time.ts'
import { type CaptureEntry, isStartOf, newestFirst } from './capture-entry.ts'

/** Which captures are requested. Plain JSON except for its bigints. */
export interface ListQuestion {
  /** A full name, or a base name, which means all captures of that base name. Default: any. */
  readonly name?: string | undefined
  /** Excludes captures that end at this time or before. Default: none. */
  readonly fromNs?: bigint | undefined
  /** Excludes captures that begin at this time or later. Default: none. */
  readonly toNs?: bigint | undefined
  /** Excludes captures that begin at `toNs` - 1 and whose name is this one or sorts before it. Default: none. */
  readonly afterName?: string | undefined
  /** How many captures to request, from a device that can return a part of its list. */
  readonly limit: number
  /** How much of any other device's list is kept. */
  readonly kept: KeptLimits
}

export interface KeptLimits {
  readonly entries: number
  /** Total length of the entries' texts. At least one entry is kept. */
  readonly bytes: number
}

/** The newest of the requested captures. */
export interface ListPage {
  /** Captures in the order of newestFirst(). */
  readonly captures: readonly CaptureEntry[]
  /** Whether the device may have more, all of them later in that order. */
  readonly hasMore: boolean
}

/** The parameters of targetOf(). */
export const QUESTION_PARAMETERS = ['StreamName', 'Limit', 'From', 'To'] as const

/** Path and query that ask a device for at most `limit` captures. */
export function targetOf({ name, fromNs, toNs }: ListQuestion, limit: number): string {
  const query = [`Limit=${limit}`]
  if (name !== undefined) query.push(`StreamName=${encodeURIComponent(name)}`)
  if (fromNs !== undefined) query.push(`From=${listTimeText(fromNs)}`)
  // Devices reject later times; no capture begins there.
  if (toNs !== undefined && toNs <= TIME_LIMIT_NS) query.push(`To=${listTimeText(toNs)}`)
  return `/stream/list?${query.join('&')}`
}

/** The question for the captures of the same device that follow this one. */
export function questionAfter(question: ListQuestion, { startNs, name }: CaptureEntry): ListQuestion {
  return { ...question, toNs: startNs + 1n, afterName: name }
}

/** Selects the captures of a question from a list in any order, and holds at most twice its limits. */
export class NewestCaptures {
  readonly #question: ListQuestion
  #captures: CaptureEntry[] = []
  #bytes = 0
  #hasFullName = false
  #isCut = false

  constructor(question: ListQuestion) {
    this.#question = question
  }

  /** Adds the capture if it matches the question. */
  offer(capture: CaptureEntry): void {
    if (!this.#isInRange(capture) || !this.#isNamed(capture)) return
    this.#captures.push(capture)
    this.#bytes += capture.json.length
    const { entries, bytes } = this.#question.kept
    if (this.#captures.length > 2 * entries || this.#bytes > 2 * bytes) this.#cut()
  }

  /** What was offered; `hasMore` says whether some of it was not kept. */
  page(): ListPage {
    this.#cut()
    return { captures: this.#captures, hasMore: this.#isCut }
  }

  #isInRange({ startNs, endNs, name }: CaptureEntry): boolean {
    const { fromNs, toNs, afterName } = this.#question
    if (fromNs !== undefined && endNs !== undefined && endNs <= fromNs) return false
    if (toNs === undefined) return true
    if (startNs >= toNs) return false
    return afterName === undefined || startNs < toNs - 1n || name > afterName
  }

  /** A full name means that capture alone. */
  #isNamed({ name }: CaptureEntry): boolean {
    const asked = this.#question.name
    if (asked === undefined) return true
    if (name !== asked) return !this.#hasFullName && isStartOf(asked, name)
    if (!this.#hasFullName) {
      this.#captures = []
      this.#bytes = 0
      this.#isCut = false
    }
    this.#hasFullName = true
    return true
  }

  #cut(): void {
    const captures = this.#captures.sort(newestFirst)
    const { entries, bytes } = this.#question.kept
    let kept = 0
    let keptBytes = 0
    for (const { json } of captures) {
      if (kept === entries || (kept > 0 && keptBytes + json.length > bytes)) break
      kept += 1
      keptBytes += json.length
    }
    this.#isCut ||= kept < captures.length
    this.#captures = captures.slice(0, kept)
    this.#bytes = keptBytes
  }
}
