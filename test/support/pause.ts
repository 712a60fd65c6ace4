import { setTimeout as delay } from 'node:timers/promises'

/**
 * Lets time pass. Tests wait for events (`eventually`); where the time itself is what a test needs, it says why: `because` is for
 * who reads the test. A slow machine may make a pause longer, so nothing may be concluded from one that is too long.
 */
export async function pause(
  ms: number,
  because: string,
  options: { readonly signal?: AbortSignal; readonly ref?: boolean } = {},
): Promise<void> {
  if (because === '') throw new Error('a pause needs its reason')
  await delay(ms, undefined, options)
}
