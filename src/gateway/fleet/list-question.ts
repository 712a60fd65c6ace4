/** A question for a part of one device's list, and the captures that answer it. */
import { TIME_LIMIT_NS } from '../../shared/query/query-time.ts'
import { type CaptureEntry, isStartOf, newestFirst } from './capture-entry.ts'

/** Which captures are asked for. Plain JSON but for its bigints. */
export interface ListQuestion {
  /** A full name, or a base name: it then means all captures of that base name. Default: any. */
  readonly name?: string | undefined
  /** Leaves out captures that end at this time or before. Default: none. */
  readonly fromNs?: bigint | undefined
  /** Leaves out captures that begin at this time or later. Default: none. */
  readonly toNs?: bigint | undefined
  /** Leaves out captures that begin at `toNs` - 1 and whose name is this one or sorts before it. Default: none. */
  readonly afterName?: string | undefined
  /** How many captures are asked for, of a device that can give a part of its list. */
  readonly limit: number
  /** How much is kept of the list of any other device. */
  readonly kept: KeptLimits
}

export interface KeptLimits {
  readonly entries: number
  /** Length of the entries' texts together. At least one entry is kept. */
  readonly bytes: number
}

/** The newest captures that were asked for. */
export interface ListPage {
  /** In the order of newestFirst(). */
  readonly captures: readonly CaptureEntry[]
  /** Whether the device may have further ones, all of them later in that order. */
  readonly hasMore: boolean
}

/** The parameters of targetOf(). */
export const QUESTION_PARAMETERS = ['StreamName', 'Limit', 'From', 'To'] as const

/** Path and query that ask a device for at most `limit` captures. */
export function targetOf({ name, fromNs, toNs }: ListQuestion, limit: number): string {
  const query = [`Limit=${limit}`]
  if (name !== undefined) query.push(`StreamName=${encodeURIComponent(name)}`)
  if (fromNs !== undefined) query.push(`From=${fromNs}`)
  // Devices refuse later times; no capture begins there.
  if (toNs !== undefined && toNs <= TIME_LIMIT_NS) query.push(`To=${toNs}`)
  return `/stream/list?${query.join('&')}`
}

/** The question for the captures of the same device that follow this one. */
export function questionAfter(question: ListQuestion, { startNs, name }: CaptureEntry): ListQuestion {
  return { ...question, toNs: startNs + 1n, afterName: name }
}

/** Chooses the captures of a question from a list in any order, and holds no more than its limits and as much again. */
export class NewestCaptures {
  readonly #question: ListQuestion
  #captures: CaptureEntry[] = []
  #bytes = 0
  #hasFullName = false
  #isCut = false

  constructor(question: ListQuestion) {
    this.#question = question
  }

  /** Takes the capture if it is asked for. */
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

  /** A full name means its capture alone. */
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
