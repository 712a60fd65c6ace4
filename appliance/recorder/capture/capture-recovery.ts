/** Repairs what a recorder that ended in the middle of a capture has left, before anything is added. */
import { join } from 'node:path'
import type { StreamSummary } from '../../../native/import-capture-files.ts'
import { type RecoveredStream, recoverStream } from '../../../native/live-capture.ts'
import { type LogEntry, SegmentFlag } from '../../../native/segment-entry.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import type { EventSink } from '../../events/event-log.ts'
import { PortSegments } from '../../store/port-segments.ts'
import {
  damagedEntry,
  entriesIn,
  measuredUnlessDamaged,
  portsOnDisk,
  segmentsOnDisk,
} from '../../store/segments-on-disk.ts'
import { isGroupName, portFolder, portOfFolder } from '../../store/store-paths.ts'
import type { StoredCapture } from '../../store/stored-capture.ts'
import { finishedEntries } from '../writer/finished-entries.ts'
import { moveAside } from '../writer/move-aside.ts'
import type { StoreWriter } from '../writer/store-writer.ts'
import { RecordedCapture } from './recorded-capture.ts'

export interface RecoveryParts {
  readonly writer: StoreWriter
  /** Changes with each boot of the machine. Data written before the last boot may never have reached the disk. */
  readonly bootId: string
  readonly events: EventSink
  /** Ends the recovery between two ports, with its reason; it can be repeated. */
  readonly startSignal?: AbortSignal | undefined
}

/**
 * The capture, with what its ports hold after the segments in its log. A segment that cannot be recovered is logged as
 * damaged, so that packets can be captured again. May be repeated after a failure.
 */
export async function recoverCapture(parts: RecoveryParts, capture: StoredCapture): Promise<RecordedCapture> {
  const { writer, bootId, events, startSignal } = parts
  const { name } = capture
  const folder = writer.folderOf(name)
  const problems = [...(await clearPlaces(folder))]
  const recovered: LogEntry[] = []
  let [cutBytes, recoveredPackets] = [0n, 0n]
  for (const port of await portsOnDisk(folder)) {
    startSignal?.throwIfAborted()
    const found = await recoverPort(capture, { folder, port, isSameBoot: capture.bootId === bootId })
    recovered.push(...found.entries)
    cutBytes += found.cutBytes
    recoveredPackets += found.recoveredPackets
    problems.push(...found.problems)
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

interface RecoveredPort extends Pick<RecoveredStream, 'cutBytes' | 'recoveredPackets'> {
  readonly entries: readonly LogEntry[]
  readonly problems: readonly string[]
}

async function recoverPort(
  { table, startNs }: StoredCapture,
  {
    folder,
    port,
    isSameBoot,
  }: { readonly folder: string; readonly port: number; readonly isSameBoot: boolean },
): Promise<RecoveredPort> {
  const logged = table.portOf(port)
  const known = new PortSegments(port)
  if (logged?.newest !== undefined) known.put(logged.newest)
  const entries: LogEntry[] = []
  const problems: string[] = []
  for (let afterNumber = logged?.lastNumber ?? 0; ; ) {
    try {
      const found = await recoverStream({ folder, port, afterNumber, isSameBoot })
      if (found.stream !== undefined) entries.push(...entriesOf(found.stream, found.damagedBlocks > 0n))
      if (found.message !== '') problems.push(found.message)
      return { ...found, entries, problems }
    } catch (error) {
      if (!(error instanceof CapfleetError) || error.code === 'store-full') throw error
      const [next, another] = await segmentsOnDisk(folder, port, afterNumber)
      if (next === undefined) throw error
      // The end of the newest one may never have reached the disk, so it cannot be measured like a finished one.
      const measured = another && (await measuredUnlessDamaged(folder, port, next))
      const place = { ...next, port, recorded: { startNs } }
      const entry = typeof measured === 'object' ? measured : await damagedEntry(folder, known, place)
      if (typeof measured !== 'object') problems.push(error.message)
      known.put(entry)
      entries.push(entry)
      afterNumber = next.number
    }
  }
}

/** Moves files aside that lie where folders of segments belong. Returns descriptions. */
async function clearPlaces(folder: string): Promise<readonly string[]> {
  const inTheWay = [...(await filesIn(folder, (name) => portOfFolder(name) !== undefined))]
  for (const port of await portsOnDisk(folder)) {
    inTheWay.push(...(await filesIn(portFolder(folder, port), isGroupName)))
  }
  for (const path of inTheWay) await moveAside(path)
  return inTheWay.map((path) => `${path} was not a folder, and has been renamed`)
}

async function filesIn(folder: string, isPlace: (name: string) => boolean): Promise<readonly string[]> {
  const entries = await entriesIn(folder)
  return entries
    .filter((entry) => entry.isFile() && isPlace(entry.name))
    .map(({ name }) => join(folder, name))
}

/** It is not known here which of the segments have lost packets, so all of the port are marked. */
function entriesOf(stream: StreamSummary, isDamaged: boolean): readonly LogEntry[] {
  const flags = isDamaged ? SegmentFlag.damaged : 0
  return finishedEntries([stream]).map((entry) => ({ ...entry, flags: entry.flags | flags }))
}

/**
 * Like recoverCapture, but if the folder of the capture cannot be read or written, `replace` creates the capture that
 * continues: new packets are worth more than the name. The old one stays active, so that the next recorder tries again.
 */
export async function recoverOrReplace(
  parts: RecoveryParts,
  capture: StoredCapture,
  replace: () => Promise<RecordedCapture>,
): Promise<RecordedCapture> {
  try {
    return await recoverCapture(parts, capture)
  } catch (error) {
    if (!(error instanceof CapfleetError) || error.code !== 'store-unavailable') throw error
    const replacement = await replace().catch(() => {
      throw error
    })
    parts.events.append('capture-failed', { name: capture.name, message: error.message })
    return replacement
  }
}
