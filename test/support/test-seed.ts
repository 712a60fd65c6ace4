/**
 * The seed of a randomized test: `SEED=<number>` repeats a run, otherwise a new one. The test prints
 * it by `t.diagnostic`.
 */
export function testSeed(): number {
  const given = process.env['SEED']
  if (given === undefined) return Math.floor(Math.random() * 2 ** 31)
  const seed = Number(given)
  if (!Number.isInteger(seed)) throw new TypeError(`SEED must be a whole number, got "${given}"`)
  return seed
}
