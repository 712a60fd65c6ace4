import { setTimeout as delay } from 'node:timers/promises'
import { WAIT_LIMIT_MS } from './test-limits.ts'

/**
 * Repeats `question` until it is true; fails with `message` if that takes longer than WAIT_LIMIT_MS. `limitMs` is for
 * what needs longer on an idle machine: a shorter limit has no effect, because it would test the machine.
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
