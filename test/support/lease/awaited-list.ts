import { NotedChanges } from '../noted-changes.ts'

/** What a fake part was asked or a listener received: a list whose growth can be awaited. */
export class AwaitedList<Item> {
  readonly items: Item[] = []
  readonly #changes = new NotedChanges()

  push(item: Item): void {
    this.items.push(item)
    this.#changes.note()
  }

  /** Waits until the list meets `condition`. */
  async until(condition: (items: readonly Item[]) => boolean): Promise<void> {
    await this.#changes.until(() => condition(this.items), condition)
  }
}
