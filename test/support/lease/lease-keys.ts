/**
 * The scheduler's keys that tell of a request, of a device's use or of a replica that has left; all
 * of them go when nobody downloads or waits any more (lease-rules.lua has the list).
 */
const LEASE_KEY = /^(use|r|restore|dirty|lapsed|susd|(on|q|qb|f|own|in|out|sus):.*)$/

/** Those of them among `keys`, which begin with "{prefix}:". */
export function leaseKeys(keys: readonly string[], prefix: string): readonly string[] {
  const head = `{${prefix}}:`
  return keys.filter((key) => key.startsWith(head) && LEASE_KEY.test(key.slice(head.length))).sort()
}
