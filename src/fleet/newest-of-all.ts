/** The lists of many devices as one: a fleet of a thousand devices has hundreds of thousands of captures. */
import type { CaptureList } from './capture-lists.ts'
import type { CaptureEntry } from './device-captures.ts'

export interface DeviceCapture {
  readonly device: string
  readonly capture: CaptureEntry
}

/** A list of which something is left. */
interface Rest extends CaptureList {
  /** Its place among the lists. */
  readonly order: number
  readonly next: CaptureEntry
  /** How many of it have been given. */
  readonly given: number
}

/**
 * All captures, newest first. Of captures that began together that of the earlier list comes first. REQUIRES: each
 * list is newest first.
 */
export function* newestOfAll(lists: readonly CaptureList[]): Generator<DeviceCapture, void> {
  const heap: Rest[] = []
  for (const [order, list] of lists.entries()) {
    const [next] = list.captures
    // A list of which nothing is left leaves the heap; so none is in it that has nothing.
    if (next !== undefined) put(heap, heap.length, { ...list, order, next, given: 0 })
  }
  for (let newest = heap[0]; newest !== undefined; newest = heap[0]) {
    const { device, captures, next: capture } = newest
    yield { device, capture }
    const given = newest.given + 1
    const next = captures[given]
    const last = next === undefined ? heap.pop() : { ...newest, next, given }
    if (last !== undefined && heap.length > 0) sink(heap, last)
  }
}

function isBefore(a: Rest, b: Rest): boolean {
  if (a.next.startNs !== b.next.startNs) return a.next.startNs > b.next.startNs
  return a.order < b.order
}

/** Puts `rest` at `place`, which is free, or further up. */
function put(heap: Rest[], place: number, rest: Rest): void {
  let at = place
  while (at > 0) {
    const parent = (at - 1) >> 1
    const above = heap[parent] as Rest
    if (!isBefore(rest, above)) break
    heap[at] = above
    at = parent
  }
  heap[at] = rest
}

/** Puts `rest` in the first one's place, or further down. */
function sink(heap: Rest[], rest: Rest): void {
  let at = 0
  for (;;) {
    const left = 2 * at + 1
    const right = left + 1
    const child = right < heap.length && isBefore(heap[right] as Rest, heap[left] as Rest) ? right : left
    const below = heap[child]
    if (below === undefined || !isBefore(below, rest)) break
    heap[at] = below
    at = child
  }
  heap[at] = rest
}
