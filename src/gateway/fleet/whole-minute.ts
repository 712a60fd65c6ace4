const NS_PER_MINUTE = 60_000_000_000n

/** For callers who must not learn the exact time, which is that of a packet. */
export function wholeMinuteAfter(ns: string): string {
  const minutes = (BigInt(ns) + NS_PER_MINUTE - 1n) / NS_PER_MINUTE
  return String(minutes * NS_PER_MINUTE)
}
