/**
 * Which of n inputs has the smallest (key, rank), rank being the input's number: a tournament in
 * which each inner node remembers who lost there, so that one key that grows costs log2(n)
 * comparisons. Flat arrays, for this runs once per packet.
 */
export class LoserTree {
  /** By input. After a change of keys[winner] call replay(), after any other build(). */
  readonly keys: Float64Array
  /** The input that comes first. */
  winner = 0
  readonly #losers: Int32Array
  readonly #count: number

  /** At least one input. */
  constructor(count: number) {
    this.#count = count
    this.keys = new Float64Array(count)
    this.#losers = new Int32Array(count)
  }

  build(): void {
    this.winner = this.#winnerBelow(1)
  }

  /** The winner's key has grown. */
  replay(): void {
    const { keys } = this
    const losers = this.#losers
    let winner = this.winner
    let key = keys[winner] as number
    for (let node = (winner + this.#count) >> 1; node > 0; node >>= 1) {
      const other = losers[node] as number
      const otherKey = keys[other] as number
      if (otherKey < key || (otherKey === key && other < winner)) {
        losers[node] = winner
        winner = other
        key = otherKey
      }
    }
    this.winner = winner
  }

  /** A key below which the winner stays the winner. Keys are whole numbers. */
  winnerStaysBelow(): number {
    const { keys, winner } = this
    const losers = this.#losers
    let bound = Number.POSITIVE_INFINITY
    for (let node = (winner + this.#count) >> 1; node > 0; node >>= 1) {
      const other = losers[node] as number
      const otherKey = (keys[other] as number) + (winner < other ? 1 : 0)
      if (otherKey < bound) bound = otherKey
    }
    return bound
  }

  #winnerBelow(node: number): number {
    if (node >= this.#count) return node - this.#count
    const left = this.#winnerBelow(2 * node)
    const right = this.#winnerBelow(2 * node + 1)
    const leftKey = this.keys[left] as number
    const rightKey = this.keys[right] as number
    const leftWins = leftKey < rightKey || (leftKey === rightKey && left < right)
    this.#losers[node] = leftWins ? right : left
    return leftWins ? left : right
  }
}
