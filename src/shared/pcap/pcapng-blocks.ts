/** Blocks of pcapng (draft-ietf-opsawg-pcapng) that are not packets, little-endian, with their options. */

/** Codes of options; those of blocks overlap. */
export const PcapngOption = {
  comment: 1,
  sectionHardware: 2,
  sectionOs: 3,
  sectionProgram: 4,
  interfaceName: 2,
  interfaceDescription: 3,
  interfaceTimeResolution: 9,
  interfaceFilter: 11,
  packetDropCount: 4,
  statisticsReceived: 4,
  statisticsDelivered: 8,
} as const

export interface BlockOption {
  readonly code: number
  readonly value: Uint8Array
}

export const PcapngBlockType = {
  sectionHeader: 0x0a0d0d0a,
  interfaceDescription: 1,
  interfaceStatistics: 5,
  enhancedPacket: 6,
} as const

export const BYTE_ORDER_MAGIC = 0x1a2b3c4d
/** Type and length before the body, and the length again after it. */
const BLOCK_HEAD_BYTES = 8
const BLOCK_TAIL_BYTES = 4
const FRAME_BYTES = BLOCK_HEAD_BYTES + BLOCK_TAIL_BYTES
const END_OF_OPTIONS = 0
const OPTION_BYTES_MAX = 65_535

/** A text; one that is longer than an option may be is cut. */
export function textOption(code: number, text: string): BlockOption {
  const value = Buffer.from(text)
  if (value.length <= OPTION_BYTES_MAX) return { code, value }
  // Drops a character that was cut in the middle.
  const cut = new TextDecoder().decode(value.subarray(0, OPTION_BYTES_MAX), { stream: true })
  return { code, value: Buffer.from(cut) }
}

/** An unsigned number of 64 bits. */
export function countOption(code: number, count: bigint): BlockOption {
  const value = Buffer.alloc(8)
  value.writeBigUInt64LE(count)
  return { code, value }
}

/** Times of the interface are in nanoseconds. */
export const IN_NANOSECONDS: BlockOption = {
  code: PcapngOption.interfaceTimeResolution,
  value: Uint8Array.of(9),
}

/** A tcpdump expression; the first byte says that it is one. */
export function filterOption(expression: string): BlockOption {
  return { code: PcapngOption.interfaceFilter, value: Buffer.from(`\0${expression}`) }
}

/** A file of one section, whose length is not known when it begins. */
export function sectionHeader(options: readonly BlockOption[]): Buffer {
  const fields = Buffer.alloc(16, 0xff)
  fields.writeUInt32LE(BYTE_ORDER_MAGIC, 0)
  fields.writeUInt16LE(1, 4)
  fields.writeUInt16LE(0, 6)
  return block(PcapngBlockType.sectionHeader, fields, options)
}

export interface InterfaceFields {
  readonly linkType: number
  readonly snaplen: number
}

export function interfaceDescription(
  { linkType, snaplen }: InterfaceFields,
  options: readonly BlockOption[],
): Buffer {
  const fields = Buffer.alloc(8)
  fields.writeUInt16LE(linkType, 0)
  fields.writeUInt32LE(snaplen, 4)
  return block(PcapngBlockType.interfaceDescription, fields, options)
}

export interface StatisticsFields {
  /** The number of the interface. */
  readonly interfaceNumber: number
  /** When the figures were true. */
  readonly atNs: bigint
}

export function interfaceStatistics(
  { interfaceNumber, atNs }: StatisticsFields,
  options: readonly BlockOption[],
): Buffer {
  const fields = Buffer.alloc(12)
  fields.writeUInt32LE(interfaceNumber, 0)
  fields.writeUInt32LE(Number(atNs >> 32n), 4)
  fields.writeUInt32LE(Number(atNs & 0xffff_ffffn), 8)
  return block(PcapngBlockType.interfaceStatistics, fields, options)
}

/** Options as they stand in a block, without the end of options. */
export function optionBytes(options: readonly BlockOption[]): Buffer {
  return Buffer.concat(
    options.map(({ code, value }) => {
      const bytes = Buffer.alloc(4 + padded(value.length))
      bytes.writeUInt16LE(code, 0)
      bytes.writeUInt16LE(value.length, 2)
      bytes.set(value, 4)
      return bytes
    }),
  )
}

/** A block of pcapng that is not a packet, as it was received. */
export interface ReadBlock {
  /** The bytes before the options. */
  readonly fields: Buffer
  readonly options: readonly BlockOption[]
}

/** Bytes of the fields that interfaceDescription() and interfaceStatistics() write. */
export const INTERFACE_FIELDS_BYTES = 8
export const STATISTICS_FIELDS_BYTES = 12

/** REQUIRES: a whole little-endian block with at least these fields. Options that do not fit into it are left out. */
export function readBlock(bytes: Buffer, fieldsBytes: number): ReadBlock {
  const body = bytes.subarray(BLOCK_HEAD_BYTES, bytes.length - BLOCK_TAIL_BYTES)
  return { fields: body.subarray(0, fieldsBytes), options: readOptions(body.subarray(fieldsBytes)) }
}

/** Options as they stand in a block, up to the end of options or to one that is not complete. */
export function readOptions(bytes: Buffer): readonly BlockOption[] {
  const options: BlockOption[] = []
  for (let at = 0; at + 4 <= bytes.length; ) {
    const [code, length] = [bytes.readUInt16LE(at), bytes.readUInt16LE(at + 2)]
    const value = bytes.subarray(at + 4, at + 4 + length)
    if (code === END_OF_OPTIONS || value.length < length) break
    options.push({ code, value })
    at += 4 + padded(length)
  }
  return options
}

function block(type: number, fields: Buffer, options: readonly BlockOption[]): Buffer {
  const body = [fields, ...(options.length === 0 ? [] : [optionBytes(options), Buffer.alloc(4)])]
  const bytes = body.reduce((sum, part) => sum + part.length, FRAME_BYTES)
  const [begin, end] = [Buffer.alloc(8), Buffer.alloc(4)]
  begin.writeUInt32LE(type, 0)
  begin.writeUInt32LE(bytes, 4)
  end.writeUInt32LE(bytes, 0)
  return Buffer.concat([begin, ...body, end])
}

function padded(bytes: number): number {
  return Math.ceil(bytes / 4) * 4
}
