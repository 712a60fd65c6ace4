/** What a fake part was asked, or a listener was told: a list whose growth can be awaited. */
export class AwaitedList<Item> {
  readonly items: Item[] = []
  readonly #waiting = new Set<() => void>()

  push(item: Item): void {
    this.items.push(item)
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  /** Waits until the list is as `condition` says. */
  async until(condition: (items: readonly Item[]) => boolean): Promise<void> {
    while (!condition(this.items)) await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }
}
