/** pcapng bytes for tests: several interfaces, which an import turns into capture ports. */
import type { PcapRecord } from './pcap-records.ts'

export interface PortRecord extends PcapRecord {
  /** Number of the interface, from 0. */
  readonly port: number
}

/** A little-endian section with `ports` interfaces of nanosecond resolution and the packets in the given order. */
export function makePcapng(ports: number, records: readonly PortRecord[], linkType = 1): Buffer {
  const interfaces = Array.from({ length: ports }, () => interfaceBlock(linkType))
  return Buffer.concat([sectionBlock(), ...interfaces, ...records.map(packetBlock)])
}

function block(type: number, body: Buffer): Buffer {
  const padded = Buffer.concat([body, Buffer.alloc((4 - (body.length % 4)) % 4)])
  const bytes = Buffer.alloc(12 + padded.length)
  bytes.writeUInt32LE(type, 0)
  bytes.writeUInt32LE(bytes.length, 4)
  padded.copy(bytes, 8)
  bytes.writeUInt32LE(bytes.length, bytes.length - 4)
  return bytes
}

function sectionBlock(): Buffer {
  const body = Buffer.alloc(16)
  body.writeUInt32LE(0x1a2b3c4d, 0)
  body.writeUInt16LE(1, 4)
  body.writeBigInt64LE(-1n, 8)
  return block(0x0a0d0d0a, body)
}

function interfaceBlock(linkType: number): Buffer {
  const body = Buffer.alloc(20)
  body.writeUInt16LE(linkType, 0)
  body.writeUInt32LE(262_144, 4)
  // Option if_tsresol: 10^-9 s; then the end of the options.
  body.writeUInt16LE(9, 8)
  body.writeUInt16LE(1, 10)
  body.writeUInt8(9, 12)
  return block(1, body)
}

function packetBlock({ port, ns, originalLength, captured }: PortRecord): Buffer {
  const body = Buffer.alloc(20 + captured.length)
  body.writeUInt32LE(port, 0)
  body.writeUInt32LE(Number(ns >> 32n), 4)
  body.writeUInt32LE(Number(ns & 0xffff_ffffn), 8)
  body.writeUInt32LE(captured.length, 12)
  body.writeUInt32LE(originalLength, 16)
  body.set(captured, 20)
  return block(6, body)
}
