import type { CaptureCatalogue } from '../store/capture-catalogue.ts'
import { isDamaged, oldestHeldNs, type StoredCapture } from '../store/stored-capture.ts'
import type { StoredTotals } from './capture-group.ts'

/**
 * Reads the totals of the store from its catalogue; summed up again only if that has changed. Fails with
 * store-unavailable.
 */
export function storedTotalsReader(catalogue: CaptureCatalogue): () => Promise<StoredTotals> {
  let summed: readonly StoredCapture[] | undefined
  let totals = sumUp([])
  return async () => {
    const captures = await catalogue.list()
    if (captures !== summed) totals = sumUp(captures)
    summed = captures
    return totals
  }
}

function sumUp(captures: readonly StoredCapture[]): StoredTotals {
  let [packets, bytes, oldestNs] = [0n, 0n, 0n]
  let damaged = 0
  for (const capture of captures) {
    packets += capture.packets
    bytes += capture.bytes
    if (isDamaged(capture)) damaged += 1
    const startNs = oldestHeldNs(capture)
    if (startNs !== undefined && (oldestNs === 0n || startNs < oldestNs)) oldestNs = startNs
  }
  return { captures: captures.length, damaged, packets, bytes, oldestNs }
}
