import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'

/** Reads to the end, no faster than this. */
export async function slowReader(
  stream: Readable,
  { bytesPerSecond }: { readonly bytesPerSecond: number },
): Promise<void> {
  const startMs = performance.now()
  let bytes = 0
  for await (const chunk of stream) {
    bytes += (chunk as Buffer).length
    const aheadMs = (bytes / bytesPerSecond) * 1000 - (performance.now() - startMs)
    if (aheadMs > 0) await delay(aheadMs)
  }
}
