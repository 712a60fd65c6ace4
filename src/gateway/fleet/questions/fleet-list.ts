/** Merges the capture lists of many devices: a fleet of a thousand devices has hundreds of thousands of captures. */
import type { CapfleetError } from '../../../shared/base/error.ts'
import { FairLimit } from '../../../shared/base/fair-limit.ts'
import { deviceFailure } from '../../device/device-failure.ts'
import type { CaptureEntry } from '../captures/capture-entry.ts'
import { type ListPage, type ListQuestion, questionAfter } from '../captures/list-question.ts'
import type { FleetMember } from '../fleet.ts'
import { askMembers, type UnreachableDevice } from './ask-members.ts'

export interface DeviceCapture {
  readonly device: string
  readonly capture: CaptureEntry
}

/** A place in the order of the fleet's captures: newest first, then by device, then by name. */
export interface ListPlace {
  readonly startNs: bigint
  readonly device: string
  readonly name: string
}

export interface ListChoice {
  /** See ListQuestion. */
  readonly name?: string | undefined
  readonly fromNs?: bigint | undefined
  readonly toNs?: bigint | undefined
  /** Only captures that come after it, whether it still exists or not. Default: all. */
  readonly after?: ListPlace | undefined
  /** Maximum number of captures that will be consumed. */
  readonly most: number
}

/** Minimum number of captures buffered per device, even after all of its captures have been consumed. */
const PAGE_LEAST = 16
const PAGE_MOST = 1_024
/** Maximum number of captures buffered for all devices together. */
const HELD_ENTRIES = 65_536
/** The same in bytes, for devices that send whole lists; what is not buffered must be read again. */
const HELD_BYTES = 128 * 1_024 * 1_024
const DEVICE_BYTES_LEAST = 65_536
const DEVICE_BYTES_MOST = 32 * 1_024 * 1_024
/** Limits how many devices are asked for further pages concurrently, since all may need one at the same moment. */
const PAGES_AT_ONCE = 32

/**
 * Asks devices for their captures as these are consumed, so that it holds a part of each list however long the lists
 * are.
 */
export class FleetList {
  readonly #signal: AbortSignal
  readonly #readers: readonly DeviceReader[]

  constructor(members: readonly FleetMember[], choice: ListChoice, signal: AbortSignal) {
    this.#signal = signal
    const shared = { devices: members.length, turns: new FairLimit({ places: PAGES_AT_ONCE }), signal }
    this.#readers = members.map((member) => new DeviceReader(member, choice, shared))
  }

  /** Devices that have failed so far, of which captures are missing. */
  get unreachable(): readonly UnreachableDevice[] {
    return this.#readers.flatMap(({ device, failure }) =>
      failure === undefined ? [] : [{ device, error: failure }],
    )
  }

  /** The captures of the choice, in order. Fails with the signal's reason. */
  async *captures(): AsyncGenerator<DeviceCapture, void> {
    const members = this.#readers.map(({ member }) => member)
    const byMember = new Map(this.#readers.map((reader) => [reader.member, reader]))
    await askMembers(members, this.#signal, async (member) => await byMember.get(member)?.begin())
    const heap: DeviceReader[] = []
    for (const reader of this.#readers) if (reader.next !== undefined) put(heap, reader)
    for (let newest = heap[0]; newest !== undefined; newest = heap[0]) {
      const { device, next: capture } = newest
      if (capture === undefined) throw new Error('a reader of which nothing is left leaves the heap')
      yield { device, capture }
      newest.take()
      if (newest.next === undefined) await newest.fill()
      const last = newest.next === undefined ? heap.pop() : newest
      if (last !== undefined && heap.length > 0) sink(heap, last)
    }
  }
}

/** State shared by the readers of a list. */
interface Shared {
  readonly devices: number
  /** Limits how many devices are asked for a further page at a time. */
  readonly turns: FairLimit
  readonly signal: AbortSignal
}

/** The captures of one device that have not been consumed, one page of which is buffered. */
class DeviceReader {
  readonly member: FleetMember
  readonly device: string
  /** Why further captures are missing. */
  failure: CapfleetError | undefined
  readonly #shared: Shared
  readonly #pageMost: number
  /**
   * Whether to request a page before the previous one has been consumed, so that a long list does not wait for each.
   */
  readonly #asksAhead: boolean
  #question: ListQuestion
  #page: ListPage = { captures: [], hasMore: false }
  #taken = 0
  #ahead: Promise<ListPage> | undefined

  constructor(member: FleetMember, choice: ListChoice, shared: Shared) {
    this.member = member
    this.device = member.device.name
    this.#shared = shared
    const { most } = choice
    const { devices } = shared
    this.#pageMost = clamp(Math.floor(HELD_ENTRIES / devices), PAGE_LEAST, PAGE_MOST)
    this.#asksAhead = most > HELD_ENTRIES
    const share = clamp(Math.ceil((2 * most) / devices), PAGE_LEAST, this.#pageMost)
    const bytes = clamp(Math.floor(HELD_BYTES / devices), DEVICE_BYTES_LEAST, DEVICE_BYTES_MOST)
    this.#question = {
      name: choice.name,
      fromNs: choice.fromNs,
      ...rangeAfter(choice, this.device),
      limit: Math.min(most, share),
      kept: { entries: most, bytes },
    }
  }

  get next(): CaptureEntry | undefined {
    return this.#page.captures[this.#taken]
  }

  async begin(): Promise<void> {
    await this.#hold(this.member.captures.page(this.#question, this.#shared.signal))
  }

  take(): void {
    this.#taken += 1
    const { captures } = this.#page
    if (this.#asksAhead && this.#taken * 2 >= captures.length) this.#askNext()
  }

  /** Fetches the next page if there is one. */
  async fill(): Promise<void> {
    this.#askNext()
    if (this.#ahead !== undefined) await this.#hold(this.#ahead)
  }

  #askNext(): void {
    const { captures, hasMore } = this.#page
    const last = captures.at(-1)
    if (!hasMore || last === undefined || this.#ahead !== undefined) return
    const limit = Math.min(this.#pageMost, 2 * this.#question.limit)
    this.#question = { ...questionAfter(this.#question, last), limit }
    this.#ahead = this.#pageInTurn(this.#question)
    // A failure surfaces when it is awaited.
    this.#ahead.catch(() => undefined)
  }

  async #pageInTurn(question: ListQuestion): Promise<ListPage> {
    const { turns, signal } = this.#shared
    using _turn = await turns.acquire(signal)
    return await this.member.captures.page(question, signal)
  }

  async #hold(asked: Promise<ListPage>): Promise<void> {
    this.#taken = 0
    this.#page = { captures: [], hasMore: false }
    try {
      this.#page = await asked
    } catch (error) {
      this.#shared.signal.throwIfAborted()
      this.failure = deviceFailure(this.device, error)
    }
    this.#ahead = undefined
  }
}

/** The range in which the device's captures come after the place. */
function rangeAfter({ after, toNs }: ListChoice, device: string): Pick<ListQuestion, 'toNs' | 'afterName'> {
  if (after === undefined) return { toNs }
  // Among captures that began at that time, those of devices before it have been returned already.
  const endNs = device < after.device ? after.startNs : after.startNs + 1n
  if (toNs !== undefined && toNs < endNs) return { toNs }
  return device === after.device ? { toNs: endNs, afterName: after.name } : { toNs: endNs }
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}

function isBefore(a: DeviceReader, b: DeviceReader): boolean {
  const [aNs, bNs] = [a.next?.startNs ?? 0n, b.next?.startNs ?? 0n]
  return aNs === bNs ? a.device < b.device : aNs > bNs
}

/** Adds the reader to the heap. */
function put(heap: DeviceReader[], reader: DeviceReader): void {
  let at = heap.length
  while (at > 0) {
    const parent = (at - 1) >> 1
    const above = heap[parent] as DeviceReader
    if (!isBefore(reader, above)) break
    heap[at] = above
    at = parent
  }
  heap[at] = reader
}

/** Puts the reader in place of the first one, or further down. */
function sink(heap: DeviceReader[], reader: DeviceReader): void {
  let at = 0
  for (;;) {
    const left = 2 * at + 1
    const right = left + 1
    const isRight = right < heap.length && isBefore(heap[right] as DeviceReader, heap[left] as DeviceReader)
    const child = isRight ? right : left
    const below = heap[child]
    if (below === undefined || !isBefore(below, reader)) break
    heap[at] = below
    at = child
  }
  heap[at] = reader
}
