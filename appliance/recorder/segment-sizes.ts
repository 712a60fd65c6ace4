/** What segments take of the disk that no log says: those that are being written, and those that are to go. */
import { stat } from 'node:fs/promises'
import { portsOnDisk, sideBytesOf } from '../store/segments-on-disk.ts'
import { segmentPath } from '../store/store-paths.ts'
import type { StoredCapture } from '../store/stored-capture.ts'

/** Of the segments of an active capture that are being written; at most this many of a port wait for the log. */
const OPEN_MAX = 2

export async function openSegmentBytes({ table }: StoredCapture, folder: string): Promise<bigint> {
  let bytes = 0n
  for (const port of await portsOnDisk(folder)) {
    const last = table.portOf(port)?.lastNumber ?? 0
    for (let number = last + 1; number <= last + OPEN_MAX; number++) {
      bytes += await sizeOfSegment(segmentPath(folder, port, { number, isFlat: false }))
    }
  }
  return bytes
}

/** With index, tally and sieves; files that are missing take nothing. */
export async function sizeOfSegment(path: string): Promise<bigint> {
  const [packets, side] = await Promise.all([sizeOf(`${path}.pcap`), sideBytesOf(path)])
  return packets + BigInt(side)
}

async function sizeOf(path: string): Promise<bigint> {
  try {
    return (await stat(path, { bigint: true })).size
  } catch {
    return 0n
  }
}
