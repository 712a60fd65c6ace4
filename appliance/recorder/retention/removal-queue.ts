/**
 * Which segment is removed next: the finished segments of all captures as one queue. It holds one node per capture and
 * asks the captures' own tables for segments, so that 100,000 segments cost no memory here.
 */
import { IndexedHeap } from './indexed-heap.ts'

/** What the queue and its user need to know about a finished segment. */
export interface FinishedSegment {
  readonly number: number
  /** The largest timestamp, inclusive. */
  readonly maxNs: bigint
}

/** The remaining finished segments of one port of a capture, in recording order. */
export interface FinishedSegments<Segment extends FinishedSegment> {
  readonly port: number
  /** Number of the newest one, or 0 if there is none. */
  readonly newest: number
  /** The oldest one with a higher number, or undefined. */
  after(number: number): Segment | undefined
}

/** A capture as seen by the queue. If its members change, RemovalQueue.update() must be called. */
export interface RemovableCapture<Segment extends FinishedSegment> {
  readonly name: string
  readonly createdNs: bigint
  /** Whether its packets are as old as the import: their own times may be years ago. */
  readonly isImport: boolean
  /**
   * Whether it is being recorded: the last finished segment of each port then stays, because the next one's number
   * depends on it.
   */
  readonly isActive: boolean
  readonly ports: Iterable<FinishedSegments<Segment>>
  /** Total bytes of its remaining finished segments, with indexes, tallies and sieves. */
  readonly heldBytes: bigint
}

/** A finished segment that may be removed. */
export interface Removal<Segment extends FinishedSegment> {
  /** Full name of the capture. */
  readonly name: string
  readonly port: number
  readonly segment: Segment
  /** When its newest packet was recorded, or when it was imported. */
  readonly storedNs: bigint
}

/**
 * "creation": the segments of the oldest capture first, for making room. "storing": among the next segments of all
 * captures, the one that was stored first, for removal by age.
 */
export type RemovalOrder = 'creation' | 'storing'

interface Node<Segment extends FinishedSegment> {
  readonly capture: RemovableCapture<Segment>
  /** What this capture contributes to the sum. */
  readonly heldBytes: bigint
  /** The number of the last segment that was taken, by port. */
  readonly taken: Map<number, number>
  next: Removal<Segment> | undefined
}

type WithNext<Segment extends FinishedSegment> = Node<Segment> & { readonly next: Removal<Segment> }

/**
 * Order: the older capture first (by creation, then by name), within it the segment that was stored earlier, then the
 * lower port; the segments of a port always in order of their numbers. Each change costs O(log n) in the captures and
 * O(n) in the capture's ports. For a single user at a time.
 */
export class RemovalQueue<Segment extends FinishedSegment> {
  readonly #nodes = new Map<string, Node<Segment>>()
  /** The nodes that have a next removal. */
  readonly #heaps: Readonly<Record<RemovalOrder, IndexedHeap<WithNext<Segment>>>> = {
    creation: new IndexedHeap((a, b) => isCreatedBefore(a.capture, b.capture)),
    storing: new IndexedHeap(isStoredBefore),
  }
  readonly #setAside = new Set<string>()
  #heldBytes = 0n

  /** Bytes of the finished segments of all captures, including taken ones until their capture is updated. */
  get heldBytes(): bigint {
    return this.#heldBytes
  }

  /**
   * Adds a capture, or applies its changes: a segment was finished or removed, or the capture has ended. Taken
   * segments stay taken, even while they are still in the capture's table.
   */
  update(capture: RemovableCapture<Segment>): void {
    const before = this.#nodes.get(capture.name)
    if (before !== undefined) this.#unlink(before)
    const taken = before?.taken ?? new Map<number, number>()
    const node = { capture, heldBytes: capture.heldBytes, taken, next: nextOf(capture, taken) }
    this.#nodes.set(capture.name, node)
    this.#heldBytes += node.heldBytes - (before?.heldBytes ?? 0n)
    this.#link(node)
  }

  /** Removes the capture as a whole. Does nothing if it is not held. */
  delete(name: string): void {
    const node = this.#nodes.get(name)
    if (node === undefined) return
    this.#unlink(node)
    this.#nodes.delete(name)
    this.#setAside.delete(name)
    this.#heldBytes -= node.heldBytes
  }

  /** The segment to remove next, or undefined if none may be removed. */
  peek(order: RemovalOrder = 'creation'): Removal<Segment> | undefined {
    return this.#heaps[order].first?.next
  }

  /** Takes the result of peek() out of the queue. The caller removes the segment, then updates the capture. */
  take(order: RemovalOrder = 'creation'): Removal<Segment> | undefined {
    const node = this.#heaps[order].first
    if (node === undefined) return undefined
    const { next } = node
    this.#unlink(node)
    node.taken.set(next.port, next.segment.number)
    const changed: Node<Segment> = node
    changed.next = nextOf(node.capture, node.taken)
    this.#link(changed)
    return next
  }

  /** Leaves the capture out until returnAll(), because its segments cannot be removed now. */
  setAside(name: string): void {
    this.#setAside.add(name)
    const node = this.#nodes.get(name)
    if (node !== undefined) this.#unlink(node)
  }

  /** Returns captures that were set aside to the queue. */
  returnAll(): void {
    const names = [...this.#setAside]
    this.#setAside.clear()
    for (const name of names) {
      const node = this.#nodes.get(name)
      if (node !== undefined) this.#link(node)
    }
  }

  /** Returns what was taken of this capture and is still in its table to the queue. */
  forgetTaken(name: string): void {
    const node = this.#nodes.get(name)
    if (node === undefined) return
    node.taken.clear()
    this.update(node.capture)
  }

  #link(node: Node<Segment>): void {
    if (!hasNext(node) || this.#setAside.has(node.capture.name)) return
    this.#heaps.creation.put(node)
    this.#heaps.storing.put(node)
  }

  #unlink(node: Node<Segment>): void {
    this.#heaps.creation.delete(node as WithNext<Segment>)
    this.#heaps.storing.delete(node as WithNext<Segment>)
  }
}

function hasNext<Segment extends FinishedSegment>(node: Node<Segment>): node is WithNext<Segment> {
  return node.next !== undefined
}

/**
 * Of each port only the oldest segment is compared. This merges the ports as if every segment were as late as the
 * latest one before it in its port, so that a clock that went back makes no difference.
 */
function nextOf<Segment extends FinishedSegment>(
  capture: RemovableCapture<Segment>,
  taken: ReadonlyMap<number, number>,
): Removal<Segment> | undefined {
  const { name, createdNs, isImport, isActive } = capture
  let next: Removal<Segment> | undefined
  for (const segments of capture.ports) {
    const { port } = segments
    const segment = segments.after(taken.get(port) ?? 0)
    if (segment === undefined || (isActive && segment.number === segments.newest)) continue
    const storedNs = !isImport && segment.maxNs > createdNs ? segment.maxNs : createdNs
    if (next === undefined || storedNs < next.storedNs || (storedNs === next.storedNs && port < next.port)) {
      next = { name, port, segment, storedNs }
    }
  }
  return next
}

function isCreatedBefore<Segment extends FinishedSegment>(
  a: RemovableCapture<Segment>,
  b: RemovableCapture<Segment>,
): boolean {
  return a.createdNs === b.createdNs ? a.name < b.name : a.createdNs < b.createdNs
}

function isStoredBefore<Segment extends FinishedSegment>(
  a: WithNext<Segment>,
  b: WithNext<Segment>,
): boolean {
  if (a.next.storedNs !== b.next.storedNs) return a.next.storedNs < b.next.storedNs
  return isCreatedBefore(a.capture, b.capture)
}
