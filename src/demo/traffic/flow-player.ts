import type { Flow } from './flow-schedule.ts'

export interface PlayedPacket {
  readonly timestampNs: bigint
  readonly bytes: Buffer
}

/** A started flow: its packets by time, and the next one. */
interface Playing {
  readonly flow: Flow
  readonly order: number
  position: number
  nextNs: bigint
}

/**
 * Plays flows against one clock: yields all their packets in time order. `flows` must be sorted by start time, and the
 * packets of each flow by time. Holds only the flows that have started and not ended. For equal timestamps, the flow
 * that started first goes first.
 */
export function* playFlows(flows: Iterator<Flow>): Generator<PlayedPacket, void> {
  const heap: Playing[] = []
  let order = 0
  let next = flows.next()
  for (;;) {
    const first = heap[0]
    if (next.done !== true && (first === undefined || next.value.startNs <= first.nextNs)) {
      rise(heap, { flow: next.value, order: order++, position: 0, nextNs: startOf(next.value) })
      next = flows.next()
      continue
    }
    if (first === undefined) return
    const packet = first.flow.packets[first.position]
    if (packet !== undefined) yield { timestampNs: first.nextNs, bytes: packet.bytes }
    advance(heap, first)
  }
}

function startOf(flow: Flow): bigint {
  return flow.startNs + (flow.packets[0]?.offsetNs ?? 0n)
}

/** Advances the first flow to its next packet, or removes it after the last. */
function advance(heap: Playing[], first: Playing): void {
  first.position++
  const following = first.flow.packets[first.position]
  if (following !== undefined) {
    first.nextNs = first.flow.startNs + following.offsetNs
    sink(heap, first)
    return
  }
  const last = heap.pop()
  if (last !== undefined && last !== first) sink(heap, last)
}

function rise(heap: Playing[], entry: Playing): void {
  let position = heap.length
  while (position > 0) {
    const above = (position - 1) >> 1
    const parent = heap[above]
    if (parent === undefined || !isBefore(entry, parent)) break
    heap[position] = parent
    position = above
  }
  heap[position] = entry
}

function sink(heap: Playing[], entry: Playing): void {
  let position = 0
  for (;;) {
    const left = 2 * position + 1
    const [a, b] = [heap[left], heap[left + 1]]
    if (a === undefined) break
    const useRight = b !== undefined && isBefore(b, a)
    const child = useRight ? b : a
    if (!isBefore(child, entry)) break
    heap[position] = child
    position = useRight ? left + 1 : left
  }
  heap[position] = entry
}

function isBefore(a: Playing, b: Playing): boolean {
  return a.nextNs === b.nextNs ? a.order < b.order : a.nextNs < b.nextNs
}
