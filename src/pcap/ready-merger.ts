import { type MergeArena, OUTPUT_BYTES } from './merge-arena.ts'
import { MergeKeys } from './merge-keys.ts'
import { type RecordGate, timestampNs } from './record-gate.ts'
import { INDEX_END, INDEX_WORDS, type RecordWindow } from './record-window.ts'

export interface MergerOptions {
  /** Its outputs are used; windows may lie elsewhere. */
  readonly arena: MergeArena
  readonly nanoseconds: boolean
  readonly tsMaxNs?: bigint | undefined
  readonly gate?: RecordGate | undefined
}

interface DroppedRecords {
  packets: number
  bytes: number
}

/**
 * The part of a merge that never waits: moves runs of records from the windows of the inputs into
 * output chunks. A run is all records of one input that come before the next record of any other.
 */
export class ReadyMerger {
  readonly #windows: readonly RecordWindow[]
  readonly #keys: MergeKeys
  readonly #options: MergerOptions
  readonly #dropped: DroppedRecords[]
  readonly #arena: Uint8Array
  readonly #memory: ArrayBufferLike
  /** Where the output begins; two are filled in turn, so that a chunk stays as it is while the next is filled. */
  #outputStart = 0
  #outputBytes = 0
  #nextNs: bigint | undefined

  /** At least one window. One that shows no record is of an input that has ended. */
  constructor(windows: readonly RecordWindow[], options: MergerOptions) {
    this.#windows = windows
    this.#options = options
    this.#arena = options.arena.bytes
    this.#memory = this.#arena.buffer
    this.#dropped = windows.map(() => ({ packets: 0, bytes: 0 }))
    this.#keys = new MergeKeys(windows, options.nanoseconds)
    if (options.tsMaxNs !== undefined) this.#keys.limitTo(options.tsMaxNs)
  }

  /** The input, by its number, that must be filled before the merge can go on. */
  get dryInput(): number {
    return this.#keys.tree.winner
  }

  /** Timestamp of the first record that was left out for a limit of the gate. */
  get nextNs(): bigint | undefined {
    return this.#nextNs
  }

  /** What was left out of each input as duplicates. */
  get dropped(): readonly Readonly<DroppedRecords>[] {
    return this.#dropped
  }

  /**
   * Merges until the output is full ('ready': take it), the next input has no record at hand ('dry':
   * fill `dryInput`, then call refilled()), or nothing may follow ('end').
   */
  advance(): 'ready' | 'dry' | 'end' {
    const windows = this.#windows
    const keys = this.#keys
    const { tree } = keys
    const { gate } = this.#options
    for (;;) {
      const rank = tree.winner
      const window = windows[rank] as RecordWindow
      if ((tree.keys[rank] as number) >= keys.stop && !this.#moveOn()) return 'end'
      if (tree.winner !== rank) continue
      if (window.frontEnd === 0) return 'dry'
      if (window.frontEnd - window.front > OUTPUT_BYTES - this.#outputBytes) return 'ready'
      if (gate !== undefined) {
        const verdict = gate.judge({ window, rank, key: tree.keys[rank] as number })
        if (verdict === 'stop') return this.#stopBefore(window)
        if (verdict === 'duplicate') this.#drop(rank, window)
        else this.#takeOne(rank, window)
      } else {
        this.#takeOne(rank, window)
        if (tree.winner === rank && window.frontEnd !== 0 && window.isOrdered) this.#takeRun(rank, window)
      }
    }
  }

  /** The dry input has been filled or has ended. */
  refilled(): void {
    const { tree } = this.#keys
    this.#keys.readFront(tree.winner)
    tree.replay()
  }

  /** What is merged so far, if anything. It stays as it is until the second chunk after is begun. */
  take(): Buffer | undefined {
    if (this.#outputBytes === 0) return undefined
    const chunk = Buffer.from(this.#arena.buffer, this.#outputStart, this.#outputBytes)
    this.#outputStart = OUTPUT_BYTES - this.#outputStart
    this.#outputBytes = 0
    return chunk
  }

  #takeOne(rank: number, window: RecordWindow): void {
    const start = window.front
    window.takeRecord()
    this.#append(window, start)
    this.#rekey(rank, window)
  }

  #drop(rank: number, window: RecordWindow): void {
    const dropped = this.#dropped[rank] as DroppedRecords
    dropped.packets++
    dropped.bytes += window.frontEnd - window.front
    window.takeRecord()
    this.#rekey(rank, window)
  }

  #rekey(rank: number, window: RecordWindow): void {
    if (window.frontEnd === 0) return
    this.#keys.readRecord(rank, window)
    this.#keys.tree.replay()
  }

  /**
   * The input has won twice: takes what it has before the next of any other, as far as there is room.
   * Looks in growing and then shrinking steps for the last such record, for they are in order.
   */
  #takeRun(rank: number, window: RecordWindow): void {
    const keys = this.#keys
    const { tree } = keys
    const { index, indexFront, indexEnd, front } = window
    const below = Math.min(tree.winnerStaysBelow(), keys.stop)
    const roomEnd = front + OUTPUT_BYTES - this.#outputBytes
    if ((tree.keys[rank] as number) >= below || window.frontEnd > roomEnd) return
    const isInRun = (position: number) =>
      position < indexEnd &&
      (index[position + INDEX_END] as number) <= roomEnd &&
      keys.keyAt(index, position) < below
    let last = indexFront
    let step = INDEX_WORDS
    for (; isInRun(last + step); step *= 2) last += step
    for (step /= 2; step >= INDEX_WORDS; step /= 2) if (isInRun(last + step)) last += step
    keys.raise(rank, keys.keyAt(index, last))
    window.takeUpTo(last + INDEX_WORDS)
    this.#append(window, front)
    this.#rekey(rank, window)
  }

  /** The window's bytes from `start` to its front. */
  #append(window: RecordWindow, start: number): void {
    const { front, memory, offset } = window
    const target = this.#outputStart + this.#outputBytes
    if (memory === this.#memory) this.#arena.copyWithin(target, offset + start, offset + front)
    else this.#arena.set(window.bytes.subarray(start, front), target)
    this.#outputBytes += front - start
  }

  #moveOn(): boolean {
    const units = this.#keys.moveOn()
    if (units === undefined) return false
    this.#options.gate?.rebase(units)
    return true
  }

  #stopBefore({ view, front }: RecordWindow): 'end' {
    this.#nextNs = timestampNs(view, front, this.#options.nanoseconds)
    return 'end'
  }
}
