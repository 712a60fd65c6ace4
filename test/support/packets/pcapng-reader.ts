/** A simple, slow, independent parser of little-endian pcapng of one section, to check the product's own against. */
import type { PortRecord } from './pcapng-maker.ts'

export interface PcapngBlock {
  readonly type: number
  /** Where it ends in the file. */
  readonly end: number
  readonly body: Buffer
}

export interface PcapngPacket extends PortRecord {
  readonly comments: readonly string[]
}

export interface PcapngContent {
  /** Texts of the section's options by code. */
  readonly section: ReadonlyMap<number, string>
  readonly interfaces: readonly {
    readonly linkType: number
    readonly snaplen: number
    readonly name: string
  }[]
  readonly packets: readonly PcapngPacket[]
  /** Delivered packets by interface. */
  readonly delivered: readonly bigint[]
  /** The comments of the last block, if it is one of statistics. */
  readonly endComments: readonly string[]
  readonly lastComment: string | undefined
}

const SECTION = 0x0a0d0d0a
const INTERFACE = 1
const STATISTICS = 5
const PACKET = 6

/** Throws unless the bytes are whole blocks. */
export function pcapngBlocks(bytes: Buffer): PcapngBlock[] {
  const blocks: PcapngBlock[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = at + 12 > bytes.length ? 0 : bytes.readUInt32LE(at + 4)
    const end = at + length
    if (length < 12 || length % 4 !== 0 || end > bytes.length || bytes.readUInt32LE(end - 4) !== length)
      throw new Error(`no whole block at ${at} of ${bytes.length}`)
    blocks.push({ type: bytes.readUInt32LE(at), end, body: bytes.subarray(at + 8, end - 4) })
    at = end
  }
  return blocks
}

/** Throws unless the bytes are one whole section. */
export function readPcapng(bytes: Buffer): PcapngContent {
  const blocks = pcapngBlocks(bytes)
  const bodiesOf = (type: number) => blocks.filter((block) => block.type === type).map(({ body }) => body)
  const [section] = bodiesOf(SECTION)
  if (section === undefined || blocks[0]?.type !== SECTION || section.readUInt32LE(0) !== 0x1a2b3c4d)
    throw new Error('no little-endian section')
  const last = blocks.at(-1)
  const lastOptions = last?.type === STATISTICS ? [...eachOption(last.body.subarray(12))] : []
  const endComments = lastOptions.filter(([code]) => code === 1).map(([, value]) => String(value))
  const delivered = new Map(
    bodiesOf(STATISTICS).map((body) => [
      body.readUInt32LE(0),
      Buffer.from(optionsOf(body.subarray(12)).get(8) ?? [0, 0, 0, 0, 0, 0, 0, 0]).readBigUInt64LE(0),
    ]),
  )
  const interfaces = bodiesOf(INTERFACE).map((body) => ({
    linkType: body.readUInt16LE(0),
    snaplen: body.readUInt32LE(4),
    name: String(optionsOf(body.subarray(8)).get(2) ?? ''),
  }))
  return {
    section: new Map([...optionsOf(section.subarray(16))].map(([code, value]) => [code, String(value)])),
    interfaces,
    packets: bodiesOf(PACKET).map(packetOf),
    delivered: interfaces.map((_, number) => delivered.get(number) ?? 0n),
    endComments,
    lastComment: endComments[0],
  }
}

function packetOf(body: Buffer): PcapngPacket {
  const captured = body.readUInt32LE(12)
  const padded = Math.ceil(captured / 4) * 4
  const comments = [...eachOption(body.subarray(20 + padded))].filter(([code]) => code === 1)
  return {
    port: body.readUInt32LE(0),
    ns: (BigInt(body.readUInt32LE(4)) << 32n) | BigInt(body.readUInt32LE(8)),
    originalLength: body.readUInt32LE(16),
    captured: body.subarray(20, 20 + captured),
    comments: comments.map(([, value]) => String(value)),
  }
}

function optionsOf(options: Buffer): Map<number, Buffer> {
  return new Map(eachOption(options))
}

function* eachOption(options: Buffer): Generator<[number, Buffer]> {
  for (let at = 0; at + 4 <= options.length; ) {
    const [code, length] = [options.readUInt16LE(at), options.readUInt16LE(at + 2)]
    if (code === 0) return
    yield [code, options.subarray(at + 4, at + 4 + length)]
    at += 4 + Math.ceil(length / 4) * 4
  }
}
