import { PCAP_HEADER_BYTES, RECORD_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import { RecordCursor } from '../../shared/pcap/record-cursor.ts'

/** The packets of a PCAP in nanoseconds, as the gateway sends it: little-endian, whole records. */

export interface Packet {
  readonly ns: bigint
  readonly device: string
  /** The captured bytes. */
  readonly bytes: Uint8Array
  /** The packet's length on the wire. */
  readonly length: number
  readonly linkType: number
}

const MAGIC_NS = 0xa1b23c4d

/** An incomplete last record is ignored. */
export function readPackets(file: Uint8Array, device: string): readonly Packet[] {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  if (file.length < PCAP_HEADER_BYTES || view.getUint32(0, true) !== MAGIC_NS) return []
  const linkType = view.getUint32(20, true) & 0xffff
  const packets: Packet[] = []
  const record = new RecordCursor(file, { nanoseconds: true })
  for (record.at = PCAP_HEADER_BYTES; record.hasHeader; record.at = record.end) {
    const { at, ns, originalLength: length, end } = record
    if (end > file.length) break
    packets.push({ ns, device, bytes: file.subarray(at + RECORD_HEADER_BYTES, end), length, linkType })
  }
  return packets
}

/** The first packets of all lists in time order; for equal times in the order of the devices, as the gateway merges. */
export function firstOfAll(lists: readonly (readonly Packet[])[], count: number): readonly Packet[] {
  return lists
    .flat()
    .map((packet, index) => ({ packet, index }))
    .sort((a, b) => (a.packet.ns === b.packet.ns ? a.index - b.index : a.packet.ns < b.packet.ns ? -1 : 1))
    .slice(0, count)
    .map(({ packet }) => packet)
}

/** Lines of sixteen bytes: offset, hexadecimal, text. */
export function hexLines(bytes: Uint8Array): readonly string[] {
  return Array.from({ length: Math.ceil(bytes.length / 16) }, (_, line) => {
    const part = [...bytes.subarray(line * 16, line * 16 + 16)]
    const hex = part
      .map((byte, index) => `${index === 8 ? ' ' : ''}${byte.toString(16).padStart(2, '0')}`)
      .join(' ')
    const text = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    return `${(line * 16).toString(16).padStart(4, '0')}  ${hex.padEnd(48)}  ${text}`
  })
}
