/** Pseudo-random numbers that are the same on every machine for the same seed. Not for secrets. */
export class Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  /** `label` separates independent sequences of one seed. */
  constructor(seed: number, label = '') {
    this.#a = seed | 0
    this.#b = hashText(label)
    this.#c = 0x9e3779b9
    // The first outputs for similar seeds are similar.
    for (let i = 0; i < 16; i++) this.uint32()
  }

  /** A whole number from 0 to 2^32 - 1 ("small fast counter" generator of PractRand). */
  uint32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  /** A number from 0 (included) to 1 (excluded). */
  unit(): number {
    return this.uint32() / 4_294_967_296
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.unit() * limit)
  }

  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  chance(probability: number): boolean {
    return this.unit() < probability
  }

  /** Like below(), but small numbers are more frequent: the smallest of `draws` numbers. */
  lowBelow(limit: number, draws: number): number {
    let least = this.below(limit)
    for (let i = 1; i < draws; i++) least = Math.min(least, this.below(limit))
    return least
  }

  /** One of `items`; with more `draws`, the earlier ones are more frequent. */
  pick<T>(items: readonly T[], draws = 1): T {
    const item = items[this.lowBelow(items.length, draws)]
    if (item === undefined) throw new TypeError('pick needs at least one item')
    return item
  }

  /** Waiting time with this mean, in the same unit, never more than ten times the mean. */
  exponential(mean: number): number {
    return Math.min(-Math.log(1 - this.unit()), 10) * mean
  }

  bytes(count: number): Buffer {
    const bytes = Buffer.allocUnsafe(count)
    let position = 0
    // writeUInt32LE checks its arguments, which takes longer than the rest.
    for (; position + 4 <= count; position += 4) {
      const number = this.uint32()
      bytes[position] = number
      bytes[position + 1] = number >>> 8
      bytes[position + 2] = number >>> 16
      bytes[position + 3] = number >>> 24
    }
    for (; position < count; position++) bytes[position] = this.uint32()
    return bytes
  }
}

/** FNV-1a. */
function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash | 0
}
