/**
 * Times as shown to callers with a forced filter. A time that was taken from packets would reveal when one was seen
 * that the filter hides, also by a series of questions: ranges that they ask for, and answers, are rounded outward.
 */
const NS_PER_MINUTE = 60_000_000_000n

/** The last whole minute that is not after the time. */
export function minuteBefore(ns: bigint): bigint {
  return ns - (ns % NS_PER_MINUTE)
}

/** The first whole minute that is not before the time. */
export function minuteAfter(ns: bigint): bigint {
  return minuteBefore(ns + NS_PER_MINUTE - 1n)
}
