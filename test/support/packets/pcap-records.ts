/** A simple, slow, independent parser of classic PCAP, to check the product's own against. */

export interface PcapRecord {
  readonly ns: bigint
  readonly originalLength: number
  readonly captured: Buffer
}

export interface PcapContent {
  readonly linkType: number
  readonly snaplen: number
  readonly nanoseconds: boolean
  readonly records: readonly PcapRecord[]
}

/** Throws if the bytes are not exactly one whole little-endian PCAP. */
export function readPcap(bytes: Buffer): PcapContent {
  const magic = bytes.readUInt32LE(0)
  if (magic !== 0xa1b23c4d && magic !== 0xa1b2c3d4)
    throw new Error(`not a little-endian PCAP: ${magic.toString(16)}`)
  const nanoseconds = magic === 0xa1b23c4d
  const records: PcapRecord[] = []
  let offset = 24
  while (offset < bytes.length) {
    const end = offset + 16 + bytes.readUInt32LE(offset + 8)
    if (end > bytes.length) throw new Error(`the PCAP ends inside the record at ${offset}`)
    const fraction = BigInt(bytes.readUInt32LE(offset + 4))
    records.push({
      ns: BigInt(bytes.readUInt32LE(offset)) * 1_000_000_000n + (nanoseconds ? fraction : fraction * 1000n),
      originalLength: bytes.readUInt32LE(offset + 12),
      captured: bytes.subarray(offset + 16, end),
    })
    offset = end
  }
  return { linkType: bytes.readUInt32LE(20), snaplen: bytes.readUInt32LE(16), nanoseconds, records }
}

/** One line per record, for comparing lists with a readable difference. */
export function recordLines(records: readonly PcapRecord[]): string[] {
  return records.map(
    ({ ns, originalLength, captured }) => `${ns} ${originalLength} ${captured.toString('base64')}`,
  )
}
