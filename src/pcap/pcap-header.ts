/**
 * The 24-byte header of a classic PCAP file (draft-ietf-opsawg-pcap), little-endian, which every
 * appliance sends and the gateway writes; and the sizes of the records after it.
 */
import { CapfleetError } from '../base/error.ts'

export interface PcapHeader {
  /** The whole link type word: LINKTYPE in the low 16 bits, FCS length bits above. */
  readonly linkType: number
  /** Largest captured length of the stream, in bytes. */
  readonly snaplen: number
  /** Whether record timestamps count nanoseconds (else microseconds) within the second. */
  readonly nanoseconds: boolean
}

export const PCAP_HEADER_BYTES = 24

/** Before the captured bytes of each record: seconds, fraction, captured length, original length. */
export const RECORD_HEADER_BYTES = 16

/** libpcap's and Wireshark's limit; a record that claims more is damage, not a packet. */
export const MAX_CAPTURED_LENGTH = 262_144

const MAGIC_MICROSECONDS = 0xa1b2c3d4
const MAGIC_NANOSECONDS = 0xa1b23c4d
const VERSION_MAJOR = 2
const VERSION_MINOR = 4

/**
 * Reads a file header. `name` is what the error calls the stream. Throws device-protocol for anything but a
 * little-endian microsecond or nanosecond PCAP of version 2: no device of ours sends another.
 */
export function parsePcapHeader(bytes: Uint8Array, name = 'the stream'): PcapHeader {
  if (bytes.byteLength < PCAP_HEADER_BYTES) {
    throw new CapfleetError(
      'device-protocol',
      `${name} ended after ${bytes.byteLength} bytes, inside the 24-byte PCAP header`,
    )
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, PCAP_HEADER_BYTES)
  const magic = view.getUint32(0, true)
  if (magic !== MAGIC_NANOSECONDS && magic !== MAGIC_MICROSECONDS) {
    throw new CapfleetError('device-protocol', `${name} does not begin with a PCAP header: ${why(view)}`)
  }
  const version = view.getUint16(4, true)
  if (version !== VERSION_MAJOR) {
    throw new CapfleetError('device-protocol', `${name} sends PCAP version ${version}, expected 2`)
  }
  return {
    linkType: view.getUint32(20, true),
    snaplen: view.getUint32(16, true),
    nanoseconds: magic === MAGIC_NANOSECONDS,
  }
}

/** The 24 bytes of a header, little-endian. */
export function formatPcapHeader(header: PcapHeader): Buffer {
  const bytes = Buffer.alloc(PCAP_HEADER_BYTES)
  bytes.writeUInt32LE(header.nanoseconds ? MAGIC_NANOSECONDS : MAGIC_MICROSECONDS, 0)
  bytes.writeUInt16LE(VERSION_MAJOR, 4)
  bytes.writeUInt16LE(VERSION_MINOR, 6)
  bytes.writeUInt32LE(header.snaplen, 16)
  bytes.writeUInt32LE(header.linkType, 20)
  return bytes
}

function why(view: DataView): string {
  const swapped = view.getUint32(0, false)
  if (swapped === MAGIC_NANOSECONDS || swapped === MAGIC_MICROSECONDS) {
    return 'it is big-endian, expected little-endian'
  }
  return `its first bytes are 0x${swapped.toString(16).padStart(8, '0')}`
}
