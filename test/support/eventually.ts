import { setTimeout as delay } from 'node:timers/promises'
import { WAIT_LIMIT_MS } from './test-limits.ts'

/**
 * Asks until `question` is true; fails with `message` when it is not within WAIT_LIMIT_MS. `limitMs` is for what needs
 * longer on an idle machine: a shorter limit is not used, because it would be a test of the machine.
 */
export async function eventually(
  question: () => boolean | Promise<boolean>,
  options: { readonly limitMs?: number | undefined; readonly message: string },
): Promise<void> {
  const limitMs = Math.max(WAIT_LIMIT_MS, options.limitMs ?? 0)
  const endMs = performance.now() + limitMs
  while (!(await question())) {
    if (performance.now() > endMs) throw new Error(`not within ${limitMs} ms: ${options.message}`)
    await delay(5)
  }
}
