import { LAST_KEY, LoserTree } from './loser-tree.ts'
import { INDEX_FRACTION, INDEX_SECONDS, type RecordWindow } from './record-window.ts'

const ENDED = LAST_KEY
/** Keys below it are exact. In nanoseconds that is two seconds. */
const FAR = ENDED - 1

/**
 * The order keys of the inputs of a merge: the running maximum of an input's timestamps, so that a
 * late record goes out at once and never holds up another input. A key is one number, the units of
 * the file's fraction since a base second; of keys too far from it the place is kept as it is in
 * the file, and the base is moved when all nearer ones are gone.
 */
export class MergeKeys {
  readonly tree: LoserTree
  /** The first key that may not go out, or that is too far for a comparison: ask moveOn(). */
  stop = FAR
  readonly #windows: readonly RecordWindow[]
  readonly #unitsPerSecond: number
  readonly #farSeconds: Float64Array
  readonly #farFractions: Float64Array
  #base = Number.POSITIVE_INFINITY
  #limit: bigint | undefined

  /** At least one input. Windows that show no record are of inputs that have ended. */
  constructor(windows: readonly RecordWindow[], nanoseconds: boolean) {
    this.#windows = windows
    this.#unitsPerSecond = nanoseconds ? 1_000_000_000 : 1_000_000
    this.#farSeconds = new Float64Array(windows.length)
    this.#farFractions = new Float64Array(windows.length)
    this.tree = new LoserTree(windows.length)
    for (const { index, frontEnd } of windows) {
      if (frontEnd !== 0) this.#base = Math.min(this.#base, index[INDEX_SECONDS] as number)
    }
    for (const rank of windows.keys()) this.readFront(rank)
    this.tree.build()
  }

  get ended(): boolean {
    return this.tree.keys[this.tree.winner] === ENDED
  }

  /** Nothing from `ns` after the first record goes out. Before the first one has. */
  limitTo(ns: bigint): void {
    if (this.ended) return
    const { keys, winner } = this.tree
    const key = keys[winner] as number
    const firstKey = key < FAR ? key : this.#farKey(winner)
    const unitNs = BigInt(1_000_000_000 / this.#unitsPerSecond)
    this.#limit = BigInt(this.#base * this.#unitsPerSecond) + BigInt(firstKey) + (ns + unitNs - 1n) / unitNs
    this.#placeStop()
  }

  /** Takes up the key of the record at the front of an input; of an ended one when there is none. */
  readFront(rank: number): void {
    const window = this.#windows[rank] as RecordWindow
    if (window.frontEnd === 0) this.tree.keys[rank] = ENDED
    else this.readRecord(rank, window)
  }

  /** The same where there is a record. */
  readRecord(rank: number, { index, indexFront }: RecordWindow): void {
    const key = this.keyAt(index, indexFront)
    this.raise(rank, key)
    if (key >= FAR) this.#noteFar(rank, index, indexFront)
  }

  /** An input's key never falls. */
  raise(rank: number, key: number): void {
    const { keys } = this.tree
    if (key > (keys[rank] as number)) keys[rank] = key
  }

  /** A fraction of a second or more, seen in the wild, counts as the later instant that it adds up to. */
  keyAt(index: Uint32Array, position: number): number {
    const seconds = (index[position + INDEX_SECONDS] as number) - this.#base
    return Math.min(seconds * this.#unitsPerSecond + (index[position + INDEX_FRACTION] as number), FAR)
  }

  /**
   * When the winner's key has reached `stop`: moves the base if only that was the reason and returns
   * by how many units; undefined when the merge has come to its end.
   */
  moveOn(): number | undefined {
    const { keys, winner } = this.tree
    const key = keys[winner] as number
    if (key === ENDED || key < FAR) return undefined
    const before = this.#base
    this.#base = Number.POSITIVE_INFINITY
    for (const [rank, seconds] of this.#farSeconds.entries()) {
      if (keys[rank] !== ENDED) this.#base = Math.min(this.#base, seconds)
    }
    for (const rank of keys.keys()) {
      if (keys[rank] === ENDED) continue
      keys[rank] = Math.min(this.#farKey(rank), FAR)
    }
    this.tree.build()
    this.#placeStop()
    const isOver = (keys[this.tree.winner] as number) >= this.stop
    return isOver ? undefined : (this.#base - before) * this.#unitsPerSecond
  }

  #noteFar(rank: number, index: Uint32Array, position: number): void {
    const seconds = index[position + INDEX_SECONDS] as number
    const fraction = index[position + INDEX_FRACTION] as number
    this.#farSeconds[rank] = seconds + Math.floor(fraction / this.#unitsPerSecond)
    this.#farFractions[rank] = fraction % this.#unitsPerSecond
  }

  /** Since the base, however far. */
  #farKey(rank: number): number {
    const seconds = (this.#farSeconds[rank] as number) - this.#base
    return seconds * this.#unitsPerSecond + (this.#farFractions[rank] as number)
  }

  #placeStop(): void {
    if (this.#limit === undefined) return
    const limit = Number(this.#limit - BigInt(this.#base * this.#unitsPerSecond))
    this.stop = Math.min(FAR, Math.max(0, limit))
  }
}
