/** Reproducible random numbers: a test prints its seed, SEED=<n> repeats the run. */

export interface SeededRandom {
  readonly seed: number
  /** 0 <= value < 1 */
  next(): number
  /** An integer, min <= value <= max. */
  integer(min: number, max: number): number
  pick<Item>(items: readonly Item[]): Item
}

/** mulberry32: 32 bits of state are enough to choose test cases. */
export function seededRandom(
  seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32)),
): SeededRandom {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const integer = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1))
  return {
    seed,
    next,
    integer,
    pick: (items) => {
      const item = items[integer(0, items.length - 1)]
      if (item === undefined) throw new Error('nothing to pick from')
      return item
    },
  }
}
