/** What a device is asked for when it goes on where it broke off. */
import { type DownloadStep, mergeStep } from '../fleet/plan.ts'
import type { DeliveredPlace } from '../pcap/after-delivered.ts'
import type { DeliveredRecords } from '../pcap/input-options.ts'
import type { PcapHeader } from '../pcap/pcap-header.ts'
import type { DownloadQuery } from '../query/download-query.ts'
import type { Source } from './source.ts'

export interface BrokenOff {
  readonly step: DownloadStep
  readonly query: DownloadQuery
  readonly header: PcapHeader
  readonly delivered: DeliveredRecords
  /** What was subtracted from the device's timestamps. */
  readonly alignNs: bigint
  /** See isOrdered(); also of the stream that broke off. */
  readonly isOrdered: boolean
}

/** Whether packets come in the order of the time by which the device looks for them, as it says itself. */
export function isOrdered(
  { kind, timeSource }: DownloadQuery,
  { headers }: Pick<Source, 'headers'>,
): boolean {
  return kind !== 'single' && timeSource === 'nic' && headers['capfleet-order'] === 'time'
}

/**
 * From the last delivered timestamp on; the packets of that time come again. Where packets may not be
 * in the order of time, everything again, as many packets as were delivered to be skipped: what the
 * device holds later with an earlier time would be lost.
 */
export function resumedStep(broken: BrokenOff): {
  readonly step: DownloadStep
  readonly place: DeliveredPlace
} {
  const { step, query, header, delivered, alignNs } = broken
  const { lastNs } = delivered
  if (lastNs === undefined || !broken.isOrdered || delivered.outOfOrder > 0) {
    return { step, place: { header, packets: delivered.packets, mark: delivered.tail, ns: undefined } }
  }
  const { ties } = delivered
  const ns = lastNs + alignNs
  const rest = { ...query, beginNs: ns, tsMaxNs: undefined, endNs: endOf(broken) }
  return { step: mergeStep(step, rest), place: { header, packets: ties.packets, mark: ties, ns } }
}

/** TSMax counts from the first packet, which does not come again. */
function endOf({ query, header, delivered, alignNs }: BrokenOff): bigint {
  const { firstNs } = delivered
  if (query.tsMaxNs === undefined || firstNs === undefined) return query.endNs
  // Rounded up: the first timestamp lacks what is below a microsecond.
  const unitNs = header.nanoseconds ? 1n : 1_000n
  const units = (firstNs + alignNs + query.tsMaxNs + unitNs - 1n) / unitNs
  return units * unitNs < query.endNs ? units * unitNs : query.endNs
}
