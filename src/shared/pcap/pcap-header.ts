/**
 * The 24-byte header of a classic PCAP file (draft-ietf-opsawg-pcap), and the sizes of the records after it. The gateway
 * writes little-endian; third-party devices may send big-endian.
 */
import { CapfleetError } from '../base/error.ts'
import { PCAP_HEADER_BYTES } from './pcap-sizes.ts'

export interface PcapHeader {
  /** The whole link type word: LINKTYPE in the low 16 bits, FCS length bits above. */
  readonly linkType: number
  /** Largest captured length of the stream, in bytes. */
  readonly snaplen: number
  /** Whether record timestamps count nanoseconds (else microseconds) within the second. */
  readonly nanoseconds: boolean
}

/** The header of a stream that is being read. */
export interface StreamHeader extends PcapHeader {
  /** Byte order of the file header and of all record headers. */
  readonly isBigEndian: boolean
}

const MAGIC_MICROSECONDS = 0xa1b2c3d4
const MAGIC_NANOSECONDS = 0xa1b23c4d
const VERSION_MAJOR = 2
const VERSION_MINOR = 4

/** The first byte of a big-endian PCAP. A little-endian one begins with the last byte of its magic number. */
const BIG_ENDIAN_BYTE = 0xa1

/** Whether the PCAP that begins with this byte is big-endian. */
export function isBigEndian(firstByte: number | undefined): boolean {
  return firstByte === BIG_ENDIAN_BYTE
}

/**
 * Parses a file header. `name` is what the error calls the stream. Throws device-protocol for anything but a
 * microsecond or nanosecond PCAP of version 2.
 */
export function parsePcapHeader(bytes: Uint8Array, name = 'the stream'): StreamHeader {
  if (bytes.byteLength < PCAP_HEADER_BYTES) {
    throw new CapfleetError(
      'device-protocol',
      `${name} ended after ${bytes.byteLength} bytes, inside the 24-byte PCAP header`,
    )
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, PCAP_HEADER_BYTES)
  const isLittle = !isBigEndian(bytes[0])
  const magic = view.getUint32(0, isLittle)
  if (magic !== MAGIC_NANOSECONDS && magic !== MAGIC_MICROSECONDS) {
    const found = view.getUint32(0).toString(16).padStart(8, '0')
    throw new CapfleetError(
      'device-protocol',
      `${name} does not begin with a PCAP header: its first bytes are 0x${found}`,
    )
  }
  const version = view.getUint16(4, isLittle)
  if (version !== VERSION_MAJOR) {
    throw new CapfleetError('device-protocol', `${name} sends PCAP version ${version}, expected 2`)
  }
  return {
    linkType: view.getUint32(20, isLittle),
    snaplen: view.getUint32(16, isLittle),
    nanoseconds: magic === MAGIC_NANOSECONDS,
    isBigEndian: !isLittle,
  }
}

/** The 24 bytes of a header; little-endian, unless the header of a stream is written unchanged. */
export function formatPcapHeader(header: PcapHeader & Partial<StreamHeader>): Buffer {
  const bytes = Buffer.alloc(PCAP_HEADER_BYTES)
  const view = new DataView(bytes.buffer, bytes.byteOffset, PCAP_HEADER_BYTES)
  const isLittle = header.isBigEndian !== true
  view.setUint32(0, header.nanoseconds ? MAGIC_NANOSECONDS : MAGIC_MICROSECONDS, isLittle)
  view.setUint16(4, VERSION_MAJOR, isLittle)
  view.setUint16(6, VERSION_MINOR, isLittle)
  view.setUint32(16, header.snaplen, isLittle)
  view.setUint32(20, header.linkType, isLittle)
  return bytes
}
