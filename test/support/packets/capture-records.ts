import type { CaptureRecord } from '../../../appliance/store/capture-record.ts'
import { type Drops, type RemovedSegments, SegmentTable } from '../../../appliance/store/segment-table.ts'
import { type StoredCapture, storedCapture } from '../../../appliance/store/stored-capture.ts'
import { type LogEntry, LogEntryKind } from '../../../native/segment-entry.ts'

/** A finished segment, as given by tests. */
export type MadeSegment = Pick<LogEntry, 'number' | 'minNs' | 'maxNs' | 'packets' | 'bytes'> &
  Partial<Pick<LogEntry, 'flags'>>

export interface MadeStream {
  readonly port: number
  readonly linkType: number
  readonly snaplen: number
  readonly segments: readonly MadeSegment[]
}

export interface CaptureChanges extends Partial<CaptureRecord> {
  /** Default: one segment with packets in the capture's time range. */
  readonly streams?: readonly MadeStream[]
  readonly packets?: bigint
  readonly removed?: RemovedSegments
  readonly drops?: Drops
}

/** The record of a capture, for tests that need no packets. */
export function captureFacts(name: string, changes: Partial<CaptureRecord> = {}): CaptureRecord {
  return {
    name,
    type: 'import',
    state: 'closed',
    description: '',
    createdAt: '2026-11-20T09:30:00.000Z',
    startNs: 1_000n,
    endNs: 2_000n,
    sources: ['a.pcap'],
    packetsOutOfTimeRange: 0n,
    damages: [],
    ...changes,
  }
}

/** A capture with one stream of one segment, for tests that need no packets. */
export function captureRecord(name: string, changes: CaptureChanges = {}): StoredCapture {
  const { streams, packets = 10n, removed, drops, ...facts } = changes
  const record = captureFacts(name, facts)
  const { startNs, endNs } = record
  const whole = { number: 1, minNs: startNs, maxNs: endNs - 1n, packets, bytes: 1_024n }
  const table = new SegmentTable()
  for (const entry of entriesOfStreams(
    streams ?? [{ port: 0, linkType: 1, snaplen: 65_535, segments: [whole] }],
  )) {
    table.apply(entry)
  }
  return { ...storedCapture(record, table), removed, drops }
}

export function entriesOfStreams(streams: readonly MadeStream[]): readonly LogEntry[] {
  return streams.flatMap(({ port, linkType, snaplen, segments }) =>
    segments.map((segment) => ({
      flags: 0,
      ...segment,
      kind: LogEntryKind.finished,
      port,
      linkType,
      snaplen,
      sideBytes: 0,
      checksum: 0,
    })),
  )
}
