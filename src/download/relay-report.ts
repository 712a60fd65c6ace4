import type { DeviceReport, ReportedError } from './download-report.ts'
import { passedTrailers } from './passed-trailers.ts'

export interface RelayFacts {
  readonly device: string
  readonly bytes: bigint
  /** Of the device, lower case; empty before the end. */
  readonly trailers: Readonly<Record<string, string>>
  readonly complete: boolean
  readonly error?: ReportedError | undefined
}

/** The only device's part of a download whose packets nobody counts on their way. */
export function reportRelay({ device, bytes, trailers, complete, error }: RelayFacts): DeviceReport {
  const passed = passedTrailers(trailers)
  const packets = passed['Capfleet-Packets']
  const whole = passed['Capfleet-Truncated'] === '1' ? 'truncated' : 'complete'
  return {
    device,
    status: complete ? whole : 'failed',
    packets: packets === undefined ? undefined : BigInt(packets),
    bytes,
    firstNs: undefined,
    lastNs: undefined,
    retries: 0,
    outOfOrder: 0,
    stalledMs: 0,
    clockOffsetNs: undefined,
    clockErrorNs: undefined,
    missing: undefined,
    error,
  }
}
