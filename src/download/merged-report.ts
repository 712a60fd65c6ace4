import type { MergedInput } from '../pcap/merge.ts'
import type { DownloadQuery } from '../query/download-query.ts'
import type { DeviceReport } from './download-report.ts'
import type { DeviceClock } from './merge-request.ts'
import type { MergedDevice } from './merged-device.ts'

export interface ReportParts {
  readonly device: MergedDevice
  /** Undefined for a device that never opened. */
  readonly totals: MergedInput | undefined
  readonly clock: DeviceClock | undefined
  readonly query: DownloadQuery
}

/** One device's part in a merge. */
export function mergedReport({ device, totals, clock, query }: ReportParts): DeviceReport {
  const { error } = device
  // Packets at the last timestamp may be missing too.
  const missing = { fromNs: totals?.lastNs ?? query.beginNs, toNs: query.endNs }
  return {
    device: device.name,
    status: statusOf(device),
    packets: BigInt(totals?.packets ?? 0),
    bytes: BigInt(totals?.bytes ?? 0),
    firstNs: totals?.firstNs,
    lastNs: totals?.lastNs,
    retries: device.retries,
    outOfOrder: totals?.outOfOrder ?? 0,
    isOrdered: device.isOrdered,
    stalledMs: totals?.stalledMs ?? 0,
    clockOffsetNs: clock?.offsetNs,
    clockErrorNs: clock?.errorNs,
    missing: error === undefined ? undefined : missing,
    error: error === undefined ? undefined : { code: error.code, detail: error.message },
  }
}

function statusOf({ error, trailers }: MergedDevice): DeviceReport['status'] {
  if (error !== undefined) return 'missing'
  return trailers['capfleet-truncated'] === '1' ? 'truncated' : 'complete'
}
