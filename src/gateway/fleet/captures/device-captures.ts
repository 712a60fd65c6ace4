/** The list of captures of one device, requested in parts if the device supports that. */
import { addAbortListener } from 'node:events'
import { CapfleetError } from '../../../shared/base/error.ts'
import { type DeviceClient, type ListLimits, withinLimit } from '../../device/device-client.ts'
import type { DeviceBreaker } from '../health/device-breaker.ts'
import { type CaptureEntry, isStartOf, newestFirst, readCaptureEntry } from './capture-entry.ts'
import type { LargeAnswers } from './large-answers.ts'
import {
  type ListPage,
  type ListQuestion,
  NewestCaptures,
  QUESTION_PARAMETERS,
  targetOf,
} from './list-question.ts'
import { SharedAnswers, type SharingOptions } from './shared-answers.ts'

/** How lists are read, over all devices. */
export interface ListReading extends ListLimits {
  /** Time limit for the head of an answer, and for each MiB of it from the moment at which it may be read. */
  readonly timeoutMs: number
  /** Time limit for a device's whole answer, not counting the time it waits for others. */
  readonly totalMs: number
  readonly largeAnswers: LargeAnswers
}

/** Whether the device holds a capture of a name: one with that full name, or captures with that base name. */
export interface Holding {
  readonly match: 'full' | 'base' | 'none'
  /** The newest names that the device holds, for suggestions if a name is unknown; empty if they were not requested. */
  readonly names: readonly string[]
}

/** Names that are compared with an unknown one, which takes microseconds for each. */
const COMPARED_MAX = 10_000
/** Longer than any age that is requested. */
const HOLDING_KEPT_MS = 2_000
/** The longest part of a list that does not count as a large answer. */
const SMALL_LENGTH = 256 * 1_024
/** How much of a large answer is read at a time, before those of other devices get their turn. */
const TURN_LENGTH = 1_024 * 1_024

export class DeviceCaptures {
  readonly #client: DeviceClient
  readonly #breaker: DeviceBreaker
  readonly #reading: ListReading
  readonly #pages = new SharedAnswers<ListPage>(0)
  readonly #holdings = new SharedAnswers<Holding | undefined>(HOLDING_KEPT_MS)
  readonly #names = new SharedAnswers<KnownNames>(HOLDING_KEPT_MS)
  /** Whether the device can return a part of its list, according to its last answer. */
  #givesParts: boolean | undefined

  constructor(client: DeviceClient, breaker: DeviceBreaker, reading: ListReading) {
    this.#client = client
    this.#breaker = breaker
    this.#reading = reading
  }

  /**
   * The newest of the requested captures as of now, at least one if there is one. Fails with device-timeout, like
   * DeviceClient.getJson, or with the signal's reason.
   */
  page(question: ListQuestion, signal: AbortSignal): Promise<ListPage> {
    const key = JSON.stringify(question, (_name, value) =>
      typeof value === 'bigint' ? String(value) : value,
    )
    const ask = async (left: AbortSignal) =>
      (await this.#askPart(question, left)) ?? (await this.#wholeList(question, left))
    return this.#pages.get(key, { maxAgeMs: 0, signal }, (left) => this.#breaker.run(() => ask(left)))
  }

  /**
   * Whether the device holds a capture with this full name, or else captures with this base name. Fails like page().
   */
  async holding(name: string, sharing: SharingOptions): Promise<Holding> {
    if (this.#givesParts !== false) {
      const ask = (left: AbortSignal) => this.#breaker.run(() => this.#askHolding(name, left))
      const holding = await this.#holdings.get(name, sharing, ask)
      if (holding !== undefined) return holding
    }
    const names = await this.#names.get('', sharing, (left) => this.#breaker.run(() => this.#allNames(left)))
    return names.holding(name)
  }

  /** Discards what is cached about the device, because it has changed. */
  forget(): void {
    this.#pages.forget()
    this.#holdings.forget()
    this.#names.forget()
  }

  /** Returns undefined if the device cannot return parts of its list. */
  async #askHolding(name: string, signal: AbortSignal): Promise<Holding | undefined> {
    const kept = { entries: 1, bytes: 1 }
    const page = await this.#askPart({ name, limit: 1, kept }, signal)
    if (page === undefined) return undefined
    const [found] = page.captures
    if (found === undefined) return { match: 'none', names: [] }
    return { match: found.name === name ? 'full' : 'base', names: [] }
  }

  /** A part of the list, or undefined if the device cannot return parts. */
  async #askPart(question: ListQuestion, signal: AbortSignal): Promise<ListPage | undefined> {
    if (this.#givesParts === false) return undefined
    for (let { limit } = question; ; limit *= 2) {
      const page = await this.#readPart(question, limit, signal)
      // More captures than were requested may have begun at the same time, all of them returned before.
      if (page === undefined || page.captures.length > 0 || !page.hasMore) return page
    }
  }

  async #readPart(question: ListQuestion, limit: number, signal: AbortSignal): Promise<ListPage | undefined> {
    const chosen = new NewestCaptures(question)
    let given = 0
    const take = (capture: CaptureEntry) => {
      given += 1
      chosen.offer(capture)
    }
    try {
      const isPart = await this.#read({ target: targetOf(question, limit), isWhole: false, take }, signal)
      if (!isPart) return undefined
    } catch (error) {
      if (!isRefusal(error)) throw error
      this.#givesParts = false
      return undefined
    }
    const page = chosen.page()
    return { ...page, hasMore: page.hasMore || given >= limit }
  }

  async #wholeList(question: ListQuestion, signal: AbortSignal): Promise<ListPage> {
    const chosen = new NewestCaptures(question)
    const take = (capture: CaptureEntry) => chosen.offer(capture)
    await this.#read({ target: '/stream/list', isWhole: true, take }, signal)
    return chosen.page()
  }

  async #allNames(signal: AbortSignal): Promise<KnownNames> {
    const captures: CaptureEntry[] = []
    const take = (capture: CaptureEntry) => void captures.push({ ...capture, json: '' })
    await this.#read({ target: '/stream/list', isWhole: true, take }, signal)
    return new KnownNames(captures.sort(newestFirst).map(({ name }) => name))
  }

  /**
   * Reads a list to its end. Returns false if a part was requested from a device that does not say it supports that;
   * nothing was consumed then. Potentially large answers are read in turns, and the device's time only counts while
   * its answer is being read.
   */
  async #read({ target, isWhole, take }: ListRequest, signal: AbortSignal): Promise<boolean> {
    const { timeoutMs, totalMs, largeAnswers } = this.#reading
    const device = this.#client.device.name
    const ended = new AbortController()
    const onHeaders = (headers: Readonly<Record<string, string>>) => {
      this.#givesParts = canGiveParts(headers[LIST_PARAMETERS_HEADER])
    }
    const batches = this.#client.getList(target, this.#reading, { signal: ended.signal, onHeaders })
    const within = <Result>(limitMs: number, work: () => Promise<Result>) =>
      withinLimit(device, { timeoutMs: limitMs, signal }, async (limit) => {
        addAbortListener(limit, () => ended.abort(limit.reason))
        return await work()
      })
    const readTurn = async (lengthMax: number): Promise<boolean> => {
      for (let length = 0; length < lengthMax; ) {
        const batch = await batches.next()
        if (batch.done === true) return true
        for (const json of batch.value) {
          take(readCaptureEntry(device, json))
          length += json.length
        }
      }
      return false
    }
    try {
      await within(timeoutMs, () => batches.next())
      if (!isWhole && this.#givesParts !== true) return false
      let isLarge = isWhole
      for (let leftMs = totalMs; ; isLarge = true) {
        using _turn = isLarge ? await largeAnswers.begin(device, signal) : undefined
        const startedMs = performance.now()
        const lengthMax = isLarge ? TURN_LENGTH : SMALL_LENGTH
        if (await within(Math.min(timeoutMs, leftMs), () => readTurn(lengthMax))) return true
        leftMs = Math.max(0, leftMs - (performance.now() - startedMs))
      }
    } finally {
      await batches.return({})
    }
  }
}

interface ListRequest {
  readonly target: string
  readonly isWhole: boolean
  readonly take: (capture: CaptureEntry) => void
}

/** All names of a device, newest first. */
class KnownNames {
  readonly #names: readonly string[]
  readonly #set: ReadonlySet<string>

  constructor(names: readonly string[]) {
    this.#names = names
    this.#set = new Set(names)
  }

  holding(name: string): Holding {
    if (this.#set.has(name)) return { match: 'full', names: [] }
    if (this.#names.some((other) => isStartOf(name, other))) return { match: 'base', names: [] }
    return { match: 'none', names: this.#names.slice(0, COMPARED_MAX) }
  }
}

const LIST_PARAMETERS_HEADER = 'capfleet-list-parameters'

function canGiveParts(header: string | undefined): boolean {
  const known = new Set(header?.split(',').map((name) => name.trim()))
  return QUESTION_PARAMETERS.every((name) => known.has(name))
}

/** Whether the device answered, but refused this request. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof CapfleetError)) return false
  return error.kind.status < 500 || error.details.members?.deviceStatus !== undefined
}
