const RENEW_MIN_MS = 20_000
const RENEW_MAX_MS = 300_000

/** When to renew a session, by requesting it: after half of its remaining lifetime, according to the page's clock. */
export function renewalMs(expiresAt: string | null | undefined, nowMs: number): number {
  if (!expiresAt) return RENEW_MAX_MS
  const halfMs = (Date.parse(expiresAt) - nowMs) / 2
  return Math.min(RENEW_MAX_MS, Math.max(RENEW_MIN_MS, halfMs))
}
