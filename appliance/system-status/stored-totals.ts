import type { CaptureCatalogue } from '../capture-catalogue.ts'
import type { CaptureRecord } from '../capture-record.ts'
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
    const isOlder = oldestNs === 0n || record.startNs < oldestNs
    if (record.packets > 0n && isOlder) oldestNs = record.startNs
  }
  return { captures: captures.length, packets, bytes, oldestNs }
}
