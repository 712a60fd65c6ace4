/**
 * Which segment goes first: the finished segments of all captures as one queue. It holds a node per capture and
 * asks the captures' own tables for segments, so that 100,000 segments cost no memory here.
 */
import { IndexedHeap } from './indexed-heap.ts'

/** What the queue and its user need to know of a finished segment. */
export interface FinishedSegment {
  readonly number: number
  /** The largest timestamp, inclusive. */
  readonly maxNs: bigint
}

/** The finished segments of one port of a capture that are still held, in recording order. */
export interface FinishedSegments<Segment extends FinishedSegment> {
  readonly port: number
  /** Number of the newest one, or 0 if there is none. */
  readonly newest: number
  /** The oldest one with a higher number, undefined if there is none. */
  after(number: number): Segment | undefined
}

/** A capture as the queue sees it. Its members may change; RemovalQueue.update() has to be called then. */
export interface RemovableCapture<Segment extends FinishedSegment> {
  readonly name: string
  readonly createdNs: bigint
  /** Its packets are as old as the import: their own times may lie years back. */
  readonly isImport: boolean
  /** It is being recorded: the last finished segment of each port stays, the next one gets its number by it. */
  readonly isActive: boolean
  readonly ports: Iterable<FinishedSegments<Segment>>
  /** Bytes of all its finished segments that are held, with indexes, tallies and sieves. */
  readonly heldBytes: bigint
}

/** A finished segment that may be removed. */
export interface Removal<Segment extends FinishedSegment> {
  /** Full name of the capture. */
  readonly name: string
  readonly port: number
  readonly segment: Segment
  /** When its newest packet was recorded, or it was imported. */
  readonly storedNs: bigint
}

/**
 * By "creation" the segments of the oldest capture go first: for room. By "storing" that goes first which was stored
 * first, of the next segments of all captures: for age.
 */
export type RemovalOrder = 'creation' | 'storing'

interface Node<Segment extends FinishedSegment> {
  readonly capture: RemovableCapture<Segment>
  /** What this capture counts for in the sum. */
  readonly heldBytes: bigint
  /** By port, the number of the last segment that was taken. */
  readonly taken: Map<number, number>
  next: Removal<Segment> | undefined
}

type WithNext<Segment extends FinishedSegment> = Node<Segment> & { readonly next: Removal<Segment> }

/**
 * The older capture first (by its creation, then by its name), in it the segment that was stored earlier, then the
 * lower port; the segments of a port always in the order of their numbers. Each change costs O(log n) of the captures
 * and O(n) of the capture's ports. Not for more than one user at a time.
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

  /** Bytes of the finished segments of all captures, taken ones included until their capture is updated. */
  get heldBytes(): bigint {
    return this.#heldBytes
  }

  /**
   * Adds a capture, or notes that it has changed: a segment was finished or removed, or the capture has ended.
   * Segments that were taken stay taken, also while they are still in the capture's table.
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

  /** The capture has gone as a whole. Does nothing if it is not held. */
  delete(name: string): void {
    const node = this.#nodes.get(name)
    if (node === undefined) return
    this.#unlink(node)
    this.#nodes.delete(name)
    this.#setAside.delete(name)
    this.#heldBytes -= node.heldBytes
  }

  /** The segment that goes first, undefined if none may be removed. */
  peek(order: RemovalOrder = 'creation'): Removal<Segment> | undefined {
    return this.#heaps[order].first?.next
  }

  /** Takes what peek() returns out of the queue. The caller removes the segment, then updates the capture. */
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

  /** Leaves the capture out until returnAll(): its segments cannot be removed now. */
  setAside(name: string): void {
    this.#setAside.add(name)
    const node = this.#nodes.get(name)
    if (node !== undefined) this.#unlink(node)
  }

  /** Captures that were set aside are in the queue again. */
  returnAll(): void {
    const names = [...this.#setAside]
    this.#setAside.clear()
    for (const name of names) {
      const node = this.#nodes.get(name)
      if (node !== undefined) this.#link(node)
    }
  }

  /** What was taken of this capture and is still in its table is in the queue again. */
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
 * latest one before it in its port, so that a clock that went back changes nothing.
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
