/**
 * The finished segments of one capture, in memory, as in its log. 64 bytes each and no objects, so that a capture of
 * 100,000 segments takes 6.4 MB and each further one costs the same as the first.
 */
import { type LogEntry, LogEntryKind, SegmentFlag } from '../../native/segment-entry.ts'
import { PortSegments } from './port-segments.ts'

/** Total of what retention has removed from a capture. */
export interface RemovedSegments {
  readonly packets: bigint
  /** Bytes of the segment files. */
  readonly bytes: bigint
  /** [startNs, endNs) contained their packets. */
  readonly startNs: bigint
  readonly endNs: bigint
}

/** Packets that a recording could not keep, by cause. */
export interface Drops {
  readonly ring: bigint
  readonly disk: bigint
}

export class SegmentTable {
  readonly #ports = new Map<number, PortSegments>()
  #removed: RemovedSegments | undefined
  #drops: Drops | undefined
  #mayLackDrops = false
  #isClosed = false

  /** Ports that hold segments or once held some, ascending. */
  get ports(): readonly PortSegments[] {
    return [...this.#ports.values()].sort((a, b) => a.port - b.port)
  }

  portOf(port: number): PortSegments | undefined {
    return this.#ports.get(port)
  }

  get removed(): RemovedSegments | undefined {
    return this.#removed
  }

  get drops(): Drops | undefined {
    return this.#drops
  }

  /** Whether a lost entry of the log may have recorded further drops. */
  get mayLackDrops(): boolean {
    return this.#mayLackDrops
  }

  /** Whether the log says that the capture has ended. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  get packets(): bigint {
    return this.#sum((port) => port.packets)
  }

  /** Bytes of the segment files. */
  get bytes(): bigint {
    return this.#sum((port) => port.bytes)
  }

  /** Disk space of the segments, including index, tallies and sieves. */
  get storedBytes(): bigint {
    return this.#sum((port) => port.bytes + port.sideBytes)
  }

  /** Number of held segments of which some packets are known to be lost. */
  get damagedSegments(): number {
    let count = 0
    for (const port of this.#ports.values()) count += port.damagedSegments
    return count
  }

  get segments(): number {
    let count = 0
    for (const port of this.#ports.values()) count += port.length
    return count
  }

  /** Applies one entry of the log. */
  apply(entry: LogEntry): void {
    switch (entry.kind) {
      case LogEntryKind.finished:
        this.#port(entry.port).put(entry)
        return
      case LogEntryKind.removed:
        this.#port(entry.port).remove(entry.number)
        this.#addRemoved(entry)
        return
      case LogEntryKind.removedBefore:
        this.#port(entry.port).noteNumber(entry.number)
        this.#addRemoved(entry)
        return
      case LogEntryKind.closed:
        this.#isClosed = true
        return
      case LogEntryKind.drops:
        this.#drops = { ring: entry.packets, disk: entry.bytes }
        this.#mayLackDrops = (entry.flags & SegmentFlag.damaged) !== 0
        return
    }
  }

  /** An entry was lost that may have recorded drops. */
  noteLostDrops(): void {
    this.#mayLackDrops = true
  }

  /** Removes a segment whose files are gone although no entry says so. */
  forget(port: number, number: number): void {
    this.#ports.get(port)?.remove(number)
  }

  #port(number: number): PortSegments {
    const known = this.#ports.get(number)
    if (known !== undefined) return known
    const port = new PortSegments(number)
    this.#ports.set(number, port)
    return port
  }

  #addRemoved({ packets, bytes, minNs, maxNs }: LogEntry): void {
    const before = this.#removed
    this.#removed = {
      packets: (before?.packets ?? 0n) + packets,
      bytes: (before?.bytes ?? 0n) + bytes,
      startNs: before !== undefined && before.startNs < minNs ? before.startNs : minNs,
      endNs: before !== undefined && before.endNs > maxNs ? before.endNs : maxNs + 1n,
    }
  }

  #sum(of: (port: PortSegments) => bigint): bigint {
    let sum = 0n
    for (const port of this.#ports.values()) sum += of(port)
    return sum
  }
}
