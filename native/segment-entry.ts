/**
 * Entries of a capture's segment log (segments.log in FORMAT.md): 64 bytes each. The same bytes tell the engine which
 * segments to read, so that a download of 100,000 segments passes one buffer and opens no file before it needs it.
 */
import { loadAddon } from './load-addon.ts'

export const LOG_HEADER_BYTES = 64
export const LOG_ENTRY_BYTES = 64
const FLAGS_AT = 2

/** The kind of an entry; the values are those on disk. */
export const LogEntryKind = {
  /** A finished segment. A later entry for the same segment replaces it. */
  finished: 1,
  /** A finished segment that no longer exists. */
  removed: 2,
  /** Totals of all segments of a port that were removed before the log was compacted. */
  removedBefore: 3,
  /** The capture has ended. */
  closed: 4,
  /** Packets that the recording has lost so far: `packets` in the kernel's ring, `bytes` because of the disk. */
  drops: 5,
} as const
export type LogEntryKind = (typeof LogEntryKind)[keyof typeof LogEntryKind]

/** Bits of LogEntry.flags. */
export const SegmentFlag = {
  /** The files are directly in the port's folder, as in stores of format 1. */
  flat: 1,
  /** It is known to have lost packets. */
  damaged: 2,
  /** It is being written. Never on disk, only in what is passed to the engine. */
  growing: 4,
} as const

export interface LogEntry {
  readonly kind: LogEntryKind
  /** 0 to 255. */
  readonly port: number
  readonly flags: number
  /** 1 for 00000001.pcap. */
  readonly number: number
  /** The smallest and the largest timestamp, both inclusive. */
  readonly minNs: bigint
  readonly maxNs: bigint
  readonly packets: bigint
  /** Size of the segment file, including the file header. */
  readonly bytes: bigint
  /** Link type word of the segment's PCAP header. */
  readonly linkType: number
  readonly snaplen: number
  /** Total size of index, tallies and sieves. */
  readonly sideBytes: number
  /** Of its blocks, as in FORMAT.md; 0 = unknown. */
  readonly checksum: number
}

/** Writes an entry without its checksum. */
export function writeLogEntry(into: Buffer, at: number, entry: LogEntry): void {
  into.writeUInt8(entry.kind, at)
  into.writeUInt8(entry.port, at + 1)
  into.writeUInt16LE(entry.flags, at + FLAGS_AT)
  into.writeUInt32LE(entry.number, at + 4)
  into.writeBigInt64LE(entry.minNs, at + 8)
  into.writeBigInt64LE(entry.maxNs, at + 16)
  into.writeBigUInt64LE(entry.packets, at + 24)
  into.writeBigUInt64LE(entry.bytes, at + 32)
  into.writeUInt32LE(entry.linkType, at + 40)
  into.writeUInt32LE(entry.snaplen, at + 44)
  into.writeUInt32LE(entry.sideBytes, at + 48)
  into.writeUInt32LE(entry.checksum, at + 52)
}

/** Reads an entry whose checksum has been verified. */
export function readLogEntry(from: Buffer, at: number): LogEntry {
  return {
    kind: from.readUInt8(at) as LogEntryKind,
    port: from.readUInt8(at + 1),
    flags: from.readUInt16LE(at + FLAGS_AT),
    number: from.readUInt32LE(at + 4),
    minNs: from.readBigInt64LE(at + 8),
    maxNs: from.readBigInt64LE(at + 16),
    packets: from.readBigUInt64LE(at + 24),
    bytes: from.readBigUInt64LE(at + 32),
    linkType: from.readUInt32LE(at + 40),
    snaplen: from.readUInt32LE(at + 44),
    sideBytes: from.readUInt32LE(at + 48),
    checksum: from.readUInt32LE(at + 52),
  }
}

/** Concatenated entries, as passed to the engine. */
export function packLogEntries(entries: readonly LogEntry[]): Buffer {
  const packed = Buffer.alloc(entries.length * LOG_ENTRY_BYTES)
  entries.forEach((entry, i) => {
    writeLogEntry(packed, i * LOG_ENTRY_BYTES, entry)
  })
  return packed
}

/** Number of the concatenated entries that have any of these flags. */
export function countFlagged(entries: Uint8Array, flags: number): number {
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength)
  let count = 0
  for (let at = 0; at < entries.byteLength; at += LOG_ENTRY_BYTES) {
    if ((view.getUint16(at + FLAGS_AT, true) & flags) !== 0) count++
  }
  return count
}

const engine = loadAddon<{
  sealLogEntries(entries: Uint8Array, fileOffset: number): void
  checkLogEntries(entries: Uint8Array, fileOffset: number): Uint8Array
}>('capfleet')

/** Writes the checksums of entries that will be stored consecutively from this offset of the log. */
export function sealLogEntries(entries: Buffer, fileOffset: number): void {
  engine.sealLogEntries(entries, fileOffset)
}

/** The state of each entry that was read from this offset of the log. */
export function checkLogEntries(entries: Buffer, fileOffset: number): Uint8Array {
  return engine.checkLogEntries(entries, fileOffset)
}

/** The results of checkLogEntries(). */
export const EntryState = { damaged: 0, undamaged: 1, neverWritten: 2 } as const
