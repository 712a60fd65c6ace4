/** The largest key. */
export const LAST_KEY = 2 ** 31 - 1

/** Of a node: who lost there, and with which key. */
const LOSER = 0
const LOSER_KEY = 1
const NODE_WORDS = 2

/**
 * Which of n inputs has the smallest (key, rank), rank being the input's number: a tournament in
 * which each inner node remembers who lost there, so that one key that grows costs log2(n)
 * comparisons. Flat arrays, for this runs once per packet, and no branch on who wins: among many
 * inputs a core would guess it wrong every other time, which costs more than all the rest.
 */
export class LoserTree {
  /** By input, from 0 to LAST_KEY. After a change of keys[winner] call replay(), after any other build(). */
  readonly keys: Int32Array
  /** The input that comes first. */
  winner = 0
  readonly #nodes: Int32Array
  readonly #count: number

  /** At least one input. */
  constructor(count: number) {
    this.#count = count
    this.keys = new Int32Array(count)
    this.#nodes = new Int32Array(count * NODE_WORDS)
  }

  build(): void {
    this.winner = this.#winnerBelow(1)
  }

  /** The winner's key has grown. */
  replay(): void {
    const nodes = this.#nodes
    let winner = this.winner
    let key = this.keys[winner] as number
    for (let node = (winner + this.#count) >> 1; node > 0; node >>= 1) {
      const at = node * NODE_WORDS
      const loser = nodes[at + LOSER] as number
      const loserKey = nodes[at + LOSER_KEY] as number
      // All bits set if the loser comes first now, which at equal keys is the smaller number.
      const isFirst = (loserKey - key - ((loser - winner) >>> 31)) >> 31
      const change = (loser ^ winner) & isFirst
      const keyChange = (loserKey ^ key) & isFirst
      nodes[at + LOSER] = loser ^ change
      nodes[at + LOSER_KEY] = loserKey ^ keyChange
      winner ^= change
      key ^= keyChange
    }
    this.winner = winner
  }

  /** A key below which the winner stays the winner. */
  winnerStaysBelow(): number {
    const { winner } = this
    const nodes = this.#nodes
    let bound = Number.POSITIVE_INFINITY
    for (let node = (winner + this.#count) >> 1; node > 0; node >>= 1) {
      const at = node * NODE_WORDS
      const isLater = winner < (nodes[at + LOSER] as number)
      const key = (nodes[at + LOSER_KEY] as number) + (isLater ? 1 : 0)
      if (key < bound) bound = key
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
    const at = node * NODE_WORDS
    this.#nodes[at + LOSER] = leftWins ? right : left
    this.#nodes[at + LOSER_KEY] = leftWins ? rightKey : leftKey
    return leftWins ? left : right
  }
}
