/** Sizes and lengths of time as people write them: "500MiB", "1GB", "10ms". */

const BYTES: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  m: 1e6,
  g: 1e9,
  t: 1e12,
  ki: 2 ** 10,
  mi: 2 ** 20,
  gi: 2 ** 30,
  ti: 2 ** 40,
}

/** Bytes in "500MiB", "1GB" (decimal) or "4096"; undefined if the text is no size. */
export function bytesIn(text: string): number | undefined {
  const [, count = '', unit = ''] = /^(\d+)((?:[kmgt]i?)?)b?$/i.exec(text) ?? []
  const bytes = count === '' ? Number.NaN : Number(count) * (BYTES[unit.toLowerCase()] ?? Number.NaN)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

const NANOSECONDS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
}

/** Nanoseconds in "10ms" or "2h"; undefined if the text is no length of time with a unit. */
export function nanosecondsIn(text: string): bigint | undefined {
  const [, count, unit = ''] = /^(\d{1,18})([a-z]{1,2})$/.exec(text) ?? []
  const unitNs = NANOSECONDS[unit]
  return count === undefined || unitNs === undefined ? undefined : BigInt(count) * unitNs
}
