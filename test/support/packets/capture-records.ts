import type { CaptureRecord } from '../../../appliance/store/capture-record.ts'

/** A capture record with one stream of one segment, for tests that need no packets. */
export function captureRecord(name: string, changes: Partial<CaptureRecord> = {}): CaptureRecord {
  const startNs = changes.startNs ?? 1_000n
  const endNs = changes.endNs ?? 2_000n
  return {
    format: 1,
    name,
    type: 'import',
    state: 'closed',
    description: '',
    createdAt: '2026-11-20T09:30:00.000Z',
    startNs,
    endNs,
    packets: 10n,
    bytes: 1_024n,
    streams: [
      {
        port: 0,
        linkType: 1,
        snaplen: 65_535,
        segments: [{ number: 1, minNs: startNs, maxNs: endNs - 1n, packets: 10n, bytes: 1_024n }],
      },
    ],
    sources: ['a.pcap'],
    packetsOutOfTimeRange: 0n,
    damages: [],
    ...changes,
  }
}
