/**
 * PCAP bytes for tests, written and read without src/pcap, so that a mistake there is not repeated
 * here.
 */
export interface MadePacket {
  readonly timestampNs: bigint
  readonly bytes: Uint8Array
  /** Length on the wire; that of `bytes` unless given. */
  readonly originalLength?: number | undefined
}

export interface MadePcapOptions {
  /** Default true. With false, timestamps lose what is below a microsecond. */
  readonly nanoseconds?: boolean
  readonly linkType?: number
  readonly snaplen?: number
}

/** A whole little-endian PCAP file. */
export function makePcap(packets: readonly MadePacket[], options: MadePcapOptions = {}): Buffer {
  const { nanoseconds = true, linkType = 1, snaplen = 262_144 } = options
  const header = Buffer.alloc(24)
  header.writeUInt32LE(nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, 0)
  header.writeUInt16LE(2, 4)
  header.writeUInt16LE(4, 6)
  header.writeUInt32LE(snaplen, 16)
  header.writeUInt32LE(linkType, 20)
  return Buffer.concat([header, ...packets.map((packet) => makeRecord(packet, nanoseconds))])
}

/** One record: 16-byte header and the captured bytes. */
export function makeRecord(packet: MadePacket, nanoseconds = true): Buffer {
  const record = Buffer.alloc(16 + packet.bytes.byteLength)
  const fractionNs = packet.timestampNs % 1_000_000_000n
  record.writeUInt32LE(Number(packet.timestampNs / 1_000_000_000n), 0)
  record.writeUInt32LE(Number(nanoseconds ? fractionNs : fractionNs / 1000n), 4)
  record.writeUInt32LE(packet.bytes.byteLength, 8)
  record.writeUInt32LE(packet.originalLength ?? packet.bytes.byteLength, 12)
  record.set(packet.bytes, 16)
  return record
}

/** The records of a whole PCAP file or (without its header) of a merge. Throws on a partial record. */
export function readRecords(bytes: Buffer, nanoseconds = true): MadePacket[] {
  const packets: MadePacket[] = []
  let position = 0
  while (position < bytes.byteLength) {
    const end = position + 16 + bytes.readUInt32LE(position + 8)
    if (end > bytes.byteLength) throw new RangeError(`a partial record at offset ${position}`)
    const fraction = BigInt(bytes.readUInt32LE(position + 4))
    packets.push({
      timestampNs:
        BigInt(bytes.readUInt32LE(position)) * 1_000_000_000n + (nanoseconds ? fraction : fraction * 1000n),
      bytes: bytes.subarray(position + 16, end),
      originalLength: bytes.readUInt32LE(position + 12),
    })
    position = end
  }
  return packets
}

/** The packets of a whole PCAP file of either resolution. */
export function readPcap(file: Buffer): MadePacket[] {
  return readRecords(file.subarray(24), file.readUInt32LE(0) === 0xa1b23c4d)
}

/** The bytes as chunks of at most `chunkBytes`, the way a socket delivers them. */
export async function* inChunks(bytes: Buffer, chunkBytes: number): AsyncGenerator<Buffer, void> {
  for (let start = 0; start < bytes.byteLength; start += chunkBytes) {
    yield bytes.subarray(start, start + chunkBytes)
  }
}
