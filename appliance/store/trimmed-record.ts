/** Records of captures of which retention has taken segments. Pure. */
import type { CaptureRecord, RemovedRecord, SegmentRecord, StreamRecord } from './capture-record.ts'

/** One finished segment of a capture. */
export interface SegmentOfPort {
  readonly port: number
  readonly segment: SegmentRecord
}

/** The record without this segment, which must be named in it. */
export function withoutSegment(record: CaptureRecord, { port, segment }: SegmentOfPort): CaptureRecord {
  const streams = record.streams.map((stream) =>
    stream.port === port
      ? { ...stream, segments: stream.segments.filter(({ number }) => number !== segment.number) }
      : stream,
  )
  return summedUp({ ...record, streams, removed: addRemoved(record.removed, { port, segment }) })
}

/**
 * A new record of a capture, made by who does not know what was removed meanwhile: without the
 * segments that `current`, the record that it is to replace, has lost.
 */
export function withoutRemoved(record: CaptureRecord, current: CaptureRecord | undefined): CaptureRecord {
  const removed = current?.removed
  if (current === undefined || removed === undefined) return record
  const streams = record.streams.map((stream) => ({
    ...stream,
    segments: stream.segments.filter(
      ({ number }) => number > lastRemoved(removed, stream.port) || names(current, stream.port, number),
    ),
  }))
  return summedUp({ ...record, streams, removed })
}

/** The highest number of a removed segment of this port; 0 = none was removed. */
export function lastRemoved(removed: RemovedRecord | undefined, port: number): number {
  return removed?.segments.find((segment) => segment.port === port)?.number ?? 0
}

/** How much of the capture is held, in percent of its bytes; 100 only for a whole one. */
export function validPercent({ bytes, removed }: CaptureRecord): number {
  if (removed === undefined) return 100
  const share = (100n * bytes) / (bytes + removed.bytes + 1n)
  return Number(share > 99n ? 99n : share)
}

/** Whether the record names this segment. */
export function names(record: CaptureRecord, port: number, number: number): boolean {
  const stream = record.streams.find((one) => one.port === port)
  return stream?.segments.some((segment) => segment.number === number) ?? false
}

/** With packets and bytes as the streams say. */
export function summedUp(record: CaptureRecord): CaptureRecord {
  const segments = record.streams.flatMap((stream: StreamRecord) => stream.segments)
  return {
    ...record,
    packets: segments.reduce((sum, segment) => sum + segment.packets, 0n),
    bytes: segments.reduce((sum, segment) => sum + segment.bytes, 0n),
  }
}

function addRemoved(removed: RemovedRecord | undefined, { port, segment }: SegmentOfPort): RemovedRecord {
  const { number, minNs, maxNs } = segment
  const others = removed?.segments.filter((one) => one.port !== port) ?? []
  return {
    packets: (removed?.packets ?? 0n) + segment.packets,
    bytes: (removed?.bytes ?? 0n) + segment.bytes,
    startNs: removed !== undefined && removed.startNs < minNs ? removed.startNs : minNs,
    endNs: removed !== undefined && removed.endNs > maxNs ? removed.endNs : maxNs + 1n,
    segments: [...others, { port, number: Math.max(number, lastRemoved(removed, port)) }],
  }
}
