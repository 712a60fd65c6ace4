import type { CaptureCatalogue } from '../store/capture-catalogue.ts'
import type { CaptureRecord } from '../store/capture-record.ts'
import { oldestHeldNs } from '../store/removed-spans.ts'
import type { StoredTotals } from './capture-group.ts'

/**
 * Reads what the store holds, from its catalogue; summed up anew only when that has changed.
 * Fails with store-unavailable.
 */
export function storedTotalsReader(catalogue: CaptureCatalogue): () => Promise<StoredTotals> {
  let summed: readonly CaptureRecord[] | undefined
  let totals = sumUp([])
  return async () => {
    const captures = await catalogue.list()
    if (captures !== summed) totals = sumUp(captures)
    summed = captures
    return totals
  }
}

function sumUp(captures: readonly CaptureRecord[]): StoredTotals {
  let [packets, bytes, oldestNs] = [0n, 0n, 0n]
  for (const record of captures) {
    packets += record.packets
    bytes += record.bytes
    const startNs = oldestHeldNs(record)
    if (startNs !== undefined && (oldestNs === 0n || startNs < oldestNs)) oldestNs = startNs
  }
  return { captures: captures.length, packets, bytes, oldestNs }
}
