/** Lets a test wait without sleeping: its condition is checked again after each change. */
import { WAIT_LIMIT_MS } from './test-limits.ts'

export class NotedChanges {
  readonly #waiting = new Set<() => void>()

  /** Reports a change. */
  note(): void {
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  /** Waits until `condition` holds; fails with the text of `told` if that takes longer than WAIT_LIMIT_MS. */
  async until(condition: () => boolean | Promise<boolean>, told: unknown = condition): Promise<void> {
    let isLate = false
    const limit = setTimeout(() => {
      isLate = true
      this.note()
    }, WAIT_LIMIT_MS)
    try {
      for (;;) {
        // A change during the check counts.
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
