/** Repairs what a recorder that ended in the middle of a capture has left, before anything is added. */
import type { StreamSummary } from '../../native/import-capture-files.ts'
import { recoverStream } from '../../native/live-capture.ts'
import { type LogEntry, SegmentFlag } from '../../native/segment-entry.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { EventSink } from '../events/event-log.ts'
import { portsOnDisk } from '../store/segments-on-disk.ts'
import type { StoredCapture } from '../store/stored-capture.ts'
import { RecordedCapture } from './recorded-capture.ts'
import { finishedEntries, type StoreWriter } from './store-writer.ts'

export interface RecoveryParts {
  readonly writer: StoreWriter
  /** Changes with each boot of the machine. Data written before the last boot may never have reached the disk. */
  readonly bootId: string
  readonly events: EventSink
  /** Ends the recovery between two ports, with its reason; it can be repeated. */
  readonly startSignal?: AbortSignal | undefined
}

/** The capture, with what its ports hold after the segments in its log. May be repeated after a failure. */
export async function recoverCapture(parts: RecoveryParts, capture: StoredCapture): Promise<RecordedCapture> {
  const { writer, bootId, events, startSignal } = parts
  const { name, table } = capture
  const folder = writer.folderOf(name)
  const recovered: LogEntry[] = []
  let [cutBytes, recoveredPackets] = [0n, 0n]
  const problems: string[] = []
  for (const port of await portsOnDisk(folder)) {
    startSignal?.throwIfAborted()
    const afterNumber = table.portOf(port)?.lastNumber ?? 0
    const found = await recoverStream({ folder, port, afterNumber, isSameBoot: capture.bootId === bootId })
    if (found.stream !== undefined) recovered.push(...entriesOf(found.stream, found.damagedBlocks > 0n))
    cutBytes += found.cutBytes
    recoveredPackets += found.recoveredPackets
    if (found.message !== '') problems.push(found.message)
  }
  const adopted = await RecordedCapture.adopt(writer, { capture, recovered, bootId })
  if (cutBytes > 0n || recoveredPackets > 0n) {
    events.append('capture-recovered', {
      name,
      cutBytes: String(cutBytes),
      recoveredPackets: String(recoveredPackets),
    })
  }
  for (const message of problems) events.append('capture-damaged', { name, message })
  return adopted
}

/** It is not known here which of the segments have lost packets, so all of the port are marked. */
function entriesOf(stream: StreamSummary, isDamaged: boolean): readonly LogEntry[] {
  const flags = isDamaged ? SegmentFlag.damaged : 0
  return finishedEntries([stream]).map((entry) => ({ ...entry, flags: entry.flags | flags }))
}

/**
 * Like recoverCapture, but a damaged capture is closed according to its log, and `replace` creates the capture that
 * continues: new packets are worth more than the name.
 */
export async function recoverOrReplace(
  parts: RecoveryParts,
  capture: StoredCapture,
  replace: () => Promise<RecordedCapture>,
): Promise<RecordedCapture> {
  try {
    return await recoverCapture(parts, capture)
  } catch (error) {
    if (!(error instanceof CapfleetError) || error.code !== 'store-corrupt') throw error
    parts.events.append('capture-failed', { name: capture.name, message: error.message })
    await parts.writer.changeRecord(capture.name, (record) => ({ ...record, state: 'closed' }))
    return await replace()
  }
}
