/** What a recorder that ended in the middle of a capture has left: made whole before anything is added. */
import { readdir } from 'node:fs/promises'
import { recoverStream } from '../../native/live-capture.ts'
import { CapfleetError } from '../../src/base/error.ts'
import type { EventSink } from '../events/event-log.ts'
import type { CaptureRecord, StreamRecord } from '../store/capture-record.ts'
import { RecordedCapture } from './recorded-capture.ts'
import type { StoreWriter } from './store-writer.ts'

export interface RecoveryParts {
  readonly writer: StoreWriter
  /** Another one after each start of the machine. What was written before the last start may never have reached the disk. */
  readonly bootId: string
  readonly events: EventSink
  /** Ends the recovery between two ports, with its reason; it can be repeated. */
  readonly startSignal?: AbortSignal | undefined
}

/** The capture of this record with what its streams hold. May be called again after a failure. */
export async function recoverCapture(parts: RecoveryParts, record: CaptureRecord): Promise<RecordedCapture> {
  const { writer, bootId, events, startSignal } = parts
  const folder = writer.folderOf(record.name)
  const streams: StreamRecord[] = []
  let [cutBytes, recoveredPackets] = [0n, 0n]
  for (const port of await portsIn(folder)) {
    startSignal?.throwIfAborted()
    const found = await recoverStream({ folder, port, isSameBoot: record.bootId === bootId })
    if (found.stream !== undefined) {
      streams.push({ ...found.stream, segments: [...found.stream.segments] })
    }
    cutBytes += found.cutBytes
    recoveredPackets += found.recoveredPackets
  }
  const capture = await RecordedCapture.adopt(writer, { record, streams, bootId })
  if (cutBytes > 0n || recoveredPackets > 0n) {
    events.append('capture-recovered', {
      name: record.name,
      cutBytes: String(cutBytes),
      recoveredPackets: String(recoveredPackets),
    })
  }
  return capture
}

/**
 * As recoverCapture, but one that is damaged is closed as its record has it, and `replace` makes the
 * capture that goes on: what comes is worth more than the name.
 */
export async function recoverOrReplace(
  parts: RecoveryParts,
  record: CaptureRecord,
  replace: () => Promise<RecordedCapture>,
): Promise<RecordedCapture> {
  try {
    return await recoverCapture(parts, record)
  } catch (error) {
    if (!(error instanceof CapfleetError) || error.code !== 'store-corrupt') throw error
    parts.events.append('capture-failed', { name: record.name, message: error.message })
    await parts.writer.changeRecord(record.name, (stored) => ({ ...stored, state: 'closed' }))
    return await replace()
  }
}

async function portsIn(folder: string): Promise<readonly number[]> {
  const names = await readdir(folder)
  return names
    .flatMap((name) => /^cap(\d{1,3})$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
}
