/**
 * What several sources yield, in the order in which it comes, in batches. At most about `heldMax` items wait for the
 * reader. Then the sources wait too, except that those which yield items that `mayDrop` continue without these. The sources
 * must not fail. If the reader leaves early, each of them is ended.
 */
export async function* interleaved<Item>(
  sources: readonly AsyncGenerator<Item>[],
  { heldMax, mayDrop }: { readonly heldMax: number; readonly mayDrop: (item: Item) => boolean },
): AsyncGenerator<readonly Item[]> {
  let held: Item[] = []
  let running = sources.length
  let hasLeft = false
  let news = Promise.withResolvers<void>()
  let room = Promise.withResolvers<void>()
  const pumps = sources.map(async (source) => {
    try {
      for await (const item of source) {
        const isOptional = mayDrop(item)
        if (isOptional && held.length >= heldMax) continue
        held.push(item)
        news.resolve()
        while (!isOptional && held.length >= heldMax && !hasLeft) await room.promise
        if (hasLeft) return
      }
    } finally {
      running -= 1
      news.resolve()
    }
  })
  const all = Promise.all(pumps)
  // A failure surfaces when it is awaited below.
  all.catch(() => undefined)
  try {
    while (running > 0 || held.length > 0) {
      if (held.length === 0) {
        await news.promise
        news = Promise.withResolvers<void>()
      }
      const items = held
      held = []
      room.resolve()
      room = Promise.withResolvers<void>()
      if (items.length > 0) yield items
    }
  } finally {
    hasLeft = true
    room.resolve()
    await all
  }
}
