import { join } from 'node:path'
import { clockNs } from '../../native/addon.ts'
import { type MachineRoots, readText } from './kernel-files.ts'

export interface DiskIo {
  readonly atNs: bigint
  /** Reads and writes in progress at this moment. */
  readonly inFlight: number
  /** Over the time since the previous reading; undefined at first. */
  readonly readGbps: number | undefined
  readonly writeGbps: number | undefined
}

/** /proc/diskstats counts sectors of this size, whatever the disk's own are. */
const SECTOR_BYTES = 512

interface Counters {
  readonly atNs: bigint
  readonly readBytes: number
  readonly writeBytes: number
  readonly inFlight: number
}

/** Reads the sum over `disks` (names in /sys/block); each call returns the rates since the last. */
export function diskIoReader(
  roots: MachineRoots,
  disks: readonly string[],
): (signal: AbortSignal) => Promise<DiskIo> {
  let before: Counters | undefined
  return async (signal) => {
    const now = parseCounters((await readText(join(roots.proc, 'diskstats'), signal)) ?? '', disks)
    const elapsedNs = before === undefined ? 0 : Number(now.atNs - before.atNs)
    // Bits per nanosecond are gigabits per second.
    const gbps = (bytes: number): number => (bytes * 8) / elapsedNs
    const rates =
      before === undefined || elapsedNs <= 0
        ? { readGbps: undefined, writeGbps: undefined }
        : {
            readGbps: gbps(Math.max(0, now.readBytes - before.readBytes)),
            writeGbps: gbps(Math.max(0, now.writeBytes - before.writeBytes)),
          }
    before = now
    return { atNs: now.atNs, inFlight: now.inFlight, ...rates }
  }
}

function parseCounters(text: string, disks: readonly string[]): Counters {
  const rows = text
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , name]) => name !== undefined && disks.includes(name))
  const sum = (column: number): number => rows.reduce((total, row) => total + Number(row[column] ?? 0), 0)
  return {
    atNs: clockNs(),
    readBytes: sum(5) * SECTOR_BYTES,
    writeBytes: sum(9) * SECTOR_BYTES,
    inFlight: sum(11),
  }
}
