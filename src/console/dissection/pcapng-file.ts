/** Packets of several devices as a PCAPNG file: each device is an interface, so Wireshark knows whose packet it is. */
import type { Packet } from '../inside/pcap-packets.ts'

const SECTION_HEADER = 0x0a0d0d0a
const BYTE_ORDER_MAGIC = 0x1a2b3c4d
const INTERFACE_DESCRIPTION = 1
const ENHANCED_PACKET = 6
const INTERFACE_NAME = 2
const TIME_RESOLUTION = 9
const NANOSECONDS = 9
/** Type and length before the body, and the length after it. */
const BLOCK_BYTES = 12
const PACKET_HEADER_BYTES = 20

export function pcapngFile(packets: readonly Packet[]): Uint8Array<ArrayBuffer> {
  const interfaces = new Map<string, number>()
  const blocks = [sectionHeader()]
  const numbers = packets.map((packet) => {
    const key = `${packet.linkType} ${packet.device}`
    const known = interfaces.get(key)
    if (known !== undefined) return known
    interfaces.set(key, interfaces.size)
    blocks.push(interfaceDescription(packet))
    return interfaces.size - 1
  })
  for (const [index, packet] of packets.entries()) blocks.push(enhancedPacket(packet, numbers[index] ?? 0))
  return joined(blocks)
}

function sectionHeader(): Uint8Array {
  const body = new DataView(new ArrayBuffer(16))
  body.setUint32(0, BYTE_ORDER_MAGIC, true)
  body.setUint16(4, 1, true)
  // The length of the section is not given.
  body.setBigInt64(8, -1n, true)
  return block(SECTION_HEADER, new Uint8Array(body.buffer))
}

function interfaceDescription({ linkType, device }: Packet): Uint8Array {
  const fixed = new DataView(new ArrayBuffer(8))
  fixed.setUint16(0, linkType, true)
  const name = option(INTERFACE_NAME, new TextEncoder().encode(device))
  const resolution = option(TIME_RESOLUTION, Uint8Array.of(NANOSECONDS))
  const body = joined([new Uint8Array(fixed.buffer), name, resolution, option(0, new Uint8Array())])
  return block(INTERFACE_DESCRIPTION, body)
}

function enhancedPacket({ ns, bytes, length }: Packet, number: number): Uint8Array {
  const body = new Uint8Array(PACKET_HEADER_BYTES + padded(bytes.length))
  const view = new DataView(body.buffer)
  const values = [number, Number(ns >> 32n), Number(ns & 0xffff_ffffn), bytes.length, length]
  for (const [index, value] of values.entries()) view.setUint32(index * 4, value, true)
  body.set(bytes, PACKET_HEADER_BYTES)
  return block(ENHANCED_PACKET, body)
}

function block(type: number, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(BLOCK_BYTES + body.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, type, true)
  view.setUint32(4, bytes.length, true)
  view.setUint32(bytes.length - 4, bytes.length, true)
  bytes.set(body, 8)
  return bytes
}

function option(code: number, value: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + padded(value.length))
  const view = new DataView(bytes.buffer)
  view.setUint16(0, code, true)
  view.setUint16(2, value.length, true)
  bytes.set(value, 4)
  return bytes
}

function padded(bytes: number): number {
  return Math.ceil(bytes / 4) * 4
}

function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}
