/** What a test waits for without sleeping: it is asked again whenever something has changed. */
import { WAIT_LIMIT_MS } from './test-limits.ts'

export class NotedChanges {
  readonly #waiting = new Set<() => void>()

  /** Something is another now. */
  note(): void {
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  /** Waits until `condition` holds; fails with the text of `told` when it does not within WAIT_LIMIT_MS. */
  async until(condition: () => boolean | Promise<boolean>, told: unknown = condition): Promise<void> {
    let isLate = false
    const limit = setTimeout(() => {
      isLate = true
      this.note()
    }, WAIT_LIMIT_MS)
    try {
      for (;;) {
        // A change while it is asked counts.
        const changed = new Promise<void>((resolve) => this.#waiting.add(resolve))
        if (await condition()) return
        if (isLate) throw new Error(`not within ${WAIT_LIMIT_MS} ms: ${told}`)
        await changed
      }
    } finally {
      clearTimeout(limit)
    }
  }
}
