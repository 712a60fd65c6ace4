import { setTimeout as delay } from 'node:timers/promises'

/** Asks until `question` is true; fails with `message` when it is not within `limitMs`. */
export async function eventually(
  question: () => boolean | Promise<boolean>,
  options: { readonly limitMs: number; readonly message: string },
): Promise<void> {
  const endMs = performance.now() + options.limitMs
  while (!(await question())) {
    if (performance.now() > endMs) throw new Error(`not within ${options.limitMs} ms: ${options.message}`)
    await delay(5)
  }
}
