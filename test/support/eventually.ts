import { setTimeout as delay } from 'node:timers/promises'
import { WAIT_LIMIT_MS } from './test-limits.ts'

const FIRST_PAUSE_MS = 5
const LONGEST_PAUSE_MS = 200

/**
 * Repeats `question` until it is true; fails with `message` if that takes longer than WAIT_LIMIT_MS. `limitMs` is for
 * what needs longer on an idle machine: a shorter limit has no effect, because it would test the machine. What is true
 * for a moment only may be missed: plant a fault or hold the other side instead. It asks less often the longer it
 * waits: questions cost the processor time that the answer waits for.
 */
export async function eventually(
  question: () => boolean | Promise<boolean>,
  options: { readonly limitMs?: number | undefined; readonly message: string },
): Promise<void> {
  const limitMs = Math.max(WAIT_LIMIT_MS, options.limitMs ?? 0)
  const beganMs = performance.now()
  while (!(await question())) {
    const waitedMs = performance.now() - beganMs
    if (waitedMs > limitMs) throw new Error(`not within ${limitMs} ms: ${options.message}`)
    await delay(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS + waitedMs / 10))
  }
}
