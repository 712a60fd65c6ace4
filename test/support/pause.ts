import { setTimeout as delay } from 'node:timers/promises'

/**
 * Lets time pass. Tests wait for events (`eventually`); if a test needs the time itself, `because` tells its readers
 * why. A slow machine may make a pause longer, so nothing may be concluded from one that is too long.
 */
export async function pause(
  ms: number,
  because: string,
  options: { readonly signal?: AbortSignal; readonly ref?: boolean } = {},
): Promise<void> {
  if (because === '') throw new Error('a pause needs its reason')
  await delay(ms, undefined, options)
}
