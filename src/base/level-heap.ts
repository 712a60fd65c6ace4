import { PerformanceObserver } from 'node:perf_hooks'
import v8 from 'node:v8'

/**
 * A full collection when what has grown old has grown by a fifth. V8 alone let 26 MiB of it become 80, and
 * the memory outside of its heap that garbage holds on to waits with it.
 */
const COLLECT_EARLIER = '--heap-growing-percent=20'

/**
 * V8 doubles the young generation whenever enough has survived, up to 2 x 64 MiB, and comes to use the
 * last of it only after tens of thousands of requests; 2 x 16 MiB do as well. It takes the young generation
 * of an idle process back to 2 x 1 MiB, from where it must be free to grow: in so little, what belongs to
 * the requests of a moment survives, and is copied as if it were to stay.
 */
const YOUNG_BYTES_MAX = 2 * 16 * 1024 * 1024
const DOUBLE = '--semi-space-growth-factor=2'
const KEEP = '--semi-space-growth-factor=1'

/** To be called when a server has started: from then on its heap stays level, however many requests come. */
export function keepHeapLevel(): void {
  v8.setFlagsFromString(COLLECT_EARLIER)
  limitYoungGeneration()
  new PerformanceObserver(limitYoungGeneration).observe({ entryTypes: ['gc'] })
}

/** Lets V8 double the young generation once more, or not. */
function limitYoungGeneration(): void {
  const young = v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
  const mayDouble = young !== undefined && 2 * young.space_size <= YOUNG_BYTES_MAX
  v8.setFlagsFromString(mayDouble ? DOUBLE : KEEP)
}
