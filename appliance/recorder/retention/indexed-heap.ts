/** A priority queue whose items can change their order or leave at any time, in O(log n). */
export class IndexedHeap<Item> {
  readonly #comesBefore: (a: Item, b: Item) => boolean
  readonly #items: Item[] = []
  readonly #places = new Map<Item, number>()

  /** `comesBefore` must be a strict total order of the items that are held at the same time. */
  constructor(comesBefore: (a: Item, b: Item) => boolean) {
    this.#comesBefore = comesBefore
  }

  /** The first item in order, or undefined. */
  get first(): Item | undefined {
    return this.#items[0]
  }

  /** Adds the item, or moves it to its new place if its order has changed. */
  put(item: Item): void {
    const place = this.#places.get(item) ?? this.#items.length
    this.#items[place] = item
    this.#places.set(item, place)
    this.#settle(place)
  }

  /** Does nothing if the item is not held. */
  delete(item: Item): void {
    const place = this.#places.get(item)
    if (place === undefined) return
    this.#places.delete(item)
    const last = this.#items.pop()
    if (last === undefined || last === item) return
    this.#set(place, last)
    this.#settle(place)
  }

  /** Moves the item at this place up or down until it is in order. */
  #settle(start: number): void {
    let place = start
    while (place > 0 && this.#isBefore(place, (place - 1) >> 1)) place = this.#swap(place, (place - 1) >> 1)
    for (;;) {
      let first = place
      for (const child of [2 * place + 1, 2 * place + 2]) if (this.#isBefore(child, first)) first = child
      if (first === place) return
      place = this.#swap(place, first)
    }
  }

  /** Returns false if there is no item at `a`. */
  #isBefore(a: number, b: number): boolean {
    const [itemA, itemB] = [this.#items[a], this.#items[b]]
    return itemA !== undefined && itemB !== undefined && this.#comesBefore(itemA, itemB)
  }

  #swap(a: number, b: number): number {
    const [itemA, itemB] = [this.#items[a], this.#items[b]]
    if (itemA === undefined || itemB === undefined) return b
    this.#set(a, itemB)
    this.#set(b, itemA)
    return b
  }

  #set(place: number, item: Item): void {
    this.#items[place] = item
    this.#places.set(item, place)
  }
}
