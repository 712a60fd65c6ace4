/** Packets with switch timestamps, built from known values: the expected result is known without parsing. */
import type { TimeSource } from '../../../src/shared/query/time-source.ts'
import type { SeededRandom } from '../seeded-random.ts'

/** Where a packet's vendor fields are, and their values. */
export interface VendorTruth {
  /** Its time by TSMode; absent = the packet has none. */
  readonly times: Partial<Record<Exclude<TimeSource, 'nic'>, bigint>>
  readonly a7130: { readonly device: number; readonly port: number } | undefined
  readonly c3550Port: number | undefined
  /** Is after a tag or header that hides it from a raw filter. */
  readonly isTagged: boolean
}

export interface VendorPacket extends VendorTruth {
  readonly ns: bigint
  readonly originalLength: number
  readonly captured: Buffer
  readonly udpPort: number
}

const KINDS = ['plain', 'plain', 'vlan', 'a7130', 'a7130', 'c3550', 'c3550', 'eth64', 'mac48'] as const
/** A field this far from a packet's own time is not taken for a time. */
const FAR_S = 40 * 86_400
/** Maximum offset of a switch's clock from the capture hardware's. */
const CLOCK_DISTANCE_NS = 2_000_000

/** A packet of any kind, captured whole or cut. */
export function randomVendorPacket(random: SeededRandom, ns: bigint, text: string): VendorPacket {
  for (;;) {
    const kind = random.pick(KINDS)
    const vendorNs = ns + BigInt(random.integer(-CLOCK_DISTANCE_NS, CLOCK_DISTANCE_NS))
    const packet = build(kind, { random, ns, vendorNs, text })
    if (packet !== undefined) return random.next() < 0.1 ? cutOff(packet, random) : packet
  }
}

interface Seed {
  readonly random: SeededRandom
  readonly ns: bigint
  readonly vendorNs: bigint
  readonly text: string
}

/** undefined if the bytes could be taken for another trailer by chance. */
function build(kind: (typeof KINDS)[number], seed: Seed): VendorPacket | undefined {
  const { random, ns, vendorNs, text } = seed
  const udpPort = random.pick([53, 123, 443])
  const ip = ipPacket(udpPort, `${text} ${'x'.repeat(random.integer(0, 200))}`)
  const none = { times: {}, a7130: undefined, c3550Port: undefined, isTagged: false }
  const packet = (bytes: Buffer, truth: Partial<VendorTruth> = {}): VendorPacket => ({
    ...none,
    ns,
    originalLength: bytes.length,
    captured: bytes,
    udpPort,
    ...truth,
  })
  switch (kind) {
    case 'plain':
      return packet(Buffer.concat([MACS, IPV4, ip]))
    case 'vlan':
      return packet(Buffer.concat([MACS, Buffer.from('81000064', 'hex'), IPV4, ip]), { isTagged: true })
    case 'eth64':
      return packet(Buffer.concat([MACS, eth64Header(vendorNs), IPV4, ip]), {
        isTagged: true,
        times: { vendorA7280_eth64: vendorNs },
      })
    case 'mac48':
      return packet(Buffer.concat([MACS.subarray(0, 6), mac48(vendorNs), IPV4, ip]), {
        times: { vendorA7280_mac48: vendorNs },
      })
    case 'a7130': {
      const [device, port] = [random.integer(0, 3), random.integer(1, 4)]
      const trailer = a7130Trailer(vendorNs, device, port)
      const bytes = withTrailer(Buffer.concat([MACS, IPV4, ip]), trailer, random)
      if (isMistakable(bytes, trailer.subarray(4, 8), ns)) return undefined
      return packet(bytes, { times: { vendorA7130: vendorNs }, a7130: { device, port } })
    }
    case 'c3550': {
      const port = random.integer(0, 4)
      const trailer = c3550Trailer(vendorNs, port)
      const bytes = withTrailer(Buffer.concat([MACS, IPV4, ip]), trailer, random)
      if (isMistakable(bytes, trailer.subarray(6, 10), ns)) return undefined
      return packet(bytes, { times: { vendorB3550: fromFortieths(trailer) }, c3550Port: port })
    }
  }
}

/** Trailers are lost with the end of a frame; the bytes before the cut stay. */
function cutOff(packet: VendorPacket, random: SeededRandom): VendorPacket {
  const captured = packet.captured.subarray(0, random.integer(60, packet.captured.length - 1))
  const { vendorA7280_eth64, vendorA7280_mac48 } = packet.times
  return {
    ...packet,
    captured,
    a7130: undefined,
    c3550Port: undefined,
    times: {
      ...(vendorA7280_eth64 === undefined ? {} : { vendorA7280_eth64 }),
      ...(vendorA7280_mac48 === undefined ? {} : { vendorA7280_mac48 }),
    },
  }
}

/** The third byte of the source address is larger than in any timestamp. */
const MACS = Buffer.from('0200ff00000202ffff000001', 'hex')
const IPV4 = Buffer.from('0800', 'hex')

/** IPv4 with UDP. */
export function ipPacket(udpPort: number, text: string): Buffer {
  const payload = Buffer.from(text)
  const bytes = Buffer.alloc(28)
  bytes.writeUInt16BE(0x4500, 0)
  bytes.writeUInt16BE(28 + payload.length, 2)
  bytes.writeUInt8(64, 8)
  bytes.writeUInt8(17, 9)
  bytes.writeUInt32BE(0x0a000001, 12)
  bytes.writeUInt32BE(0x0a000002, 16)
  bytes.writeUInt16BE(40_000, 20)
  bytes.writeUInt16BE(udpPort, 22)
  bytes.writeUInt16BE(8 + payload.length, 24)
  return Buffer.concat([bytes, payload])
}

const NANOS = 1_000_000_000n

function eth64Header(ns: bigint): Buffer {
  const bytes = Buffer.from('d28b0001011000000000000000000000'.slice(0, 28), 'hex')
  bytes.writeUInt32BE(Number(ns / NANOS), 6)
  bytes.writeUInt32BE(Number(ns % NANOS), 10)
  return bytes
}

function mac48(ns: bigint): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUInt16BE(Number((ns / NANOS) % 65_536n), 0)
  bytes.writeUInt32BE(Number(ns % NANOS), 2)
  return bytes
}

function a7130Trailer(ns: bigint, device: number, port: number): Buffer {
  const bytes = Buffer.alloc(16, 0xff)
  bytes.writeUInt32BE(Number(ns / NANOS), 4)
  bytes.writeUInt32BE(Number(ns % NANOS), 8)
  bytes.writeUInt8(0, 12)
  bytes.writeUInt16BE(device, 13)
  bytes.writeUInt8(port, 15)
  return bytes
}

/** The fraction is in units of 2^-40 s. */
function c3550Trailer(ns: bigint, port: number): Buffer {
  const bytes = Buffer.alloc(16, 0xff)
  const fraction = ((ns % NANOS) << 40n) / NANOS
  bytes.writeUInt8(7, 4)
  bytes.writeUInt8(port, 5)
  bytes.writeUInt32BE(Number(ns / NANOS), 6)
  bytes.writeUIntBE(Number(fraction), 10, 5)
  bytes.writeUInt8(0, 15)
  return bytes
}

function fromFortieths(trailer: Buffer): bigint {
  const fraction = BigInt(trailer.readUIntBE(10, 5))
  return BigInt(trailer.readUInt32BE(6)) * NANOS + ((fraction * NANOS) >> 40n)
}

/** With or without the frame check sequence that some hardware captures. */
function withTrailer(frame: Buffer, trailer: Buffer, random: SeededRandom): Buffer {
  const check = random.next() < 0.5 ? Buffer.alloc(4, 0xff) : Buffer.alloc(0)
  return Buffer.concat([frame, trailer, check])
}

/** Whether the end of a frame without a trailer could be taken for one. */
export function looksLikeTrailer(frame: Buffer, ns: bigint): boolean {
  return isMistakable(frame, Buffer.alloc(0), ns)
}

/** Whether the end of the frame contains another word that could be current seconds. */
function isMistakable(frame: Buffer, seconds: Buffer, ns: bigint): boolean {
  const own = seconds.length === 0 ? -1 : frame.lastIndexOf(seconds)
  const nowS = Number(ns / NANOS)
  for (let at = Math.max(0, frame.length - 40); at <= frame.length - 4; at++) {
    if (at !== own && Math.abs(frame.readUInt32BE(at) - nowS) < FAR_S) return true
  }
  return false
}
