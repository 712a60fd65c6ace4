import type { PcapInput } from './pcap-input.ts'

/** A front record's place in the merged order: key first, then the input's rank. */
interface Entry {
  readonly input: PcapInput
  /** Position in the list of inputs: the smaller one goes first on equal keys. */
  readonly rank: number
}

/**
 * The inputs that have a record at the front, as a binary heap by (key, rank). The first is the
 * next to deliver; the runner-up, which ends its run, is one of the two below it.
 */
export class InputHeap {
  readonly #entries: Entry[] = []

  get first(): Entry | undefined {
    return this.#entries[0]
  }

  /** The entry that comes after the first; undefined when there is only one. */
  get runnerUp(): Entry | undefined {
    const left = this.#entries[1]
    const right = this.#entries[2]
    if (left === undefined || right === undefined) return left
    return isBefore(right, left) ? right : left
  }

  add(input: PcapInput, rank: number): void {
    const entry = { input, rank }
    let position = this.#entries.length
    this.#entries.push(entry)
    while (position > 0) {
      const above = (position - 1) >> 1
      const parent = this.#entries[above]
      if (parent === undefined || !isBefore(entry, parent)) break
      this.#entries[position] = parent
      position = above
    }
    this.#entries[position] = entry
  }

  /** Puts the first entry where its present key belongs: call it after the key has grown. */
  sinkFirst(): void {
    const entry = this.#entries[0]
    if (entry !== undefined) this.#sink(entry)
  }

  removeFirst(): void {
    const last = this.#entries.pop()
    if (last !== undefined && this.#entries.length > 0) this.#sink(last)
  }

  /** Places `entry` from the top down. */
  #sink(entry: Entry): void {
    const entries = this.#entries
    let position = 0
    for (;;) {
      const left = 2 * position + 1
      let child = entries[left]
      if (child === undefined) break
      let next = left
      const right = entries[left + 1]
      if (right !== undefined && isBefore(right, child)) {
        child = right
        next = left + 1
      }
      if (!isBefore(child, entry)) break
      entries[position] = child
      position = next
    }
    entries[position] = entry
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  const x = a.input
  const y = b.input
  if (x.keySeconds !== y.keySeconds) return x.keySeconds < y.keySeconds
  if (x.keyFraction !== y.keyFraction) return x.keyFraction < y.keyFraction
  return a.rank < b.rank
}
