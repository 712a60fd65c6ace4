/**
 * Packets of switches whose clock can only be derived from earlier packets: ticks with key frames (vendorA7150_*) and
 * mirrored packets (vendorB_erspan3), valid and invalid.
 */
import { crc32 } from 'node:zlib'
import type { SeededRandom } from '../seeded-random.ts'
import { ipPacket, looksLikeTrailer, type VendorPacket } from './vendor-packets.ts'

const SECOND_NS = 1_000_000_000n
const MACS = Buffer.from('0200ff00000202ffff000001', 'hex')
const VLAN = Buffer.from('81000064', 'hex')

/** What the switches at one capture port send. Packets must be requested in time order. */
export class SwitchTraffic {
  readonly #random: SeededRandom
  readonly #startNs: bigint
  readonly #firstTick: bigint
  readonly #utcOffsetNs: bigint

  constructor(random: SeededRandom, startNs: bigint) {
    this.#random = random
    this.#startNs = startNs
    this.#firstTick = BigInt(random.integer(0, 2 ** 48))
    this.#utcOffsetNs = random.pick([0n, 1_500_000n, -558_600_000_000n])
  }

  /** A packet seen by the capture hardware at `ns`, captured whole or cut. */
  packet(ns: bigint, text: string): VendorPacket {
    for (;;) {
      const kind = this.#random.pick(['key', 'tick', 'tick', 'tick', 'mirrored', 'mirrored', 'mirrored'])
      const packet =
        kind === 'key'
          ? this.#keyFrame(ns)
          : kind === 'tick'
            ? this.#ticked(ns, text)
            : this.#mirrored(ns, text)
      if (!looksLikeTrailer(packet.captured, ns)) return packet
    }
  }

  #nearby(rangeNs: number): bigint {
    return BigInt(this.#random.integer(-rangeNs, rangeNs))
  }

  #tickAt(ns: bigint): bigint {
    return this.#firstTick + ((ns - this.#startNs + SECOND_NS) * 7n) / 20n
  }

  /** Version 1 or 2; or with a length that no version has, or from a switch that has no time yet. */
  #keyFrame(ns: bigint): VendorPacket {
    const random = this.#random
    const length = random.next() < 0.1 ? 70 : random.pick([66, 82])
    const stampedNs = ns + this.#nearby(2_000_000)
    const ip = ipv4(253, Buffer.alloc(length - 20), 0)
    ip.writeBigUInt64BE(this.#tickAt(stampedNs), 20)
    const utcNs = random.next() < 0.05 ? random.pick([0n, SECOND_NS << 32n]) : stampedNs + this.#utcOffsetNs
    ip.writeBigUInt64BE(utcNs, 28)
    // Its own tick is 0.
    const frame = Buffer.concat([MACS, ...this.#maybeTag(), hex('0800'), ip, Buffer.alloc(4)])
    return plainPacket(ns, this.#maybeWithFcs(frame), 0)
  }

  #ticked(ns: bigint, text: string): VendorPacket {
    const random = this.#random
    const rangeNs = random.pick([5_000, 2_000_000, 90_000_000, 110_000_000, 400_000_000])
    const word = tickWord(this.#tickAt(ns + this.#nearby(rangeNs)))
    const spoiled = random.next()
    if (spoiled < 0.05) word.fill(0)
    else if (spoiled < 0.1) word.writeUInt8(word.readUInt8(3) | 0x80, 3)
    const udpPort = random.pick([53, 123, 443])
    const frame = Buffer.concat([MACS, hex('0800'), ipPacket(udpPort, this.#payload(text)), word])
    const packet = plainPacket(ns, this.#maybeWithFcs(frame), udpPort)
    if (random.next() > 0.05) return packet
    return {
      ...packet,
      captured: packet.captured.subarray(0, random.integer(60, packet.captured.length - 1)),
    }
  }

  #maybeWithFcs(frame: Buffer): Buffer {
    if (this.#random.next() < 0.6) return frame
    const check = Buffer.alloc(4)
    check.writeUInt32LE(crc32(frame))
    return Buffer.concat([frame, check])
  }

  #maybeTag(): Buffer[] {
    return this.#random.next() < 0.3 ? [VLAN] : []
  }

  #payload(text: string): string {
    return `${text} ${'x'.repeat(this.#random.integer(0, 200))}`
  }

  /** ERSPAN of any type, carrying another frame. */
  #mirrored(ns: bigint, text: string): VendorPacket {
    const random = this.#random
    const session = random.integer(1, 3)
    const isIpv6 = random.next() < 0.3
    const isType3 = random.next() < 0.93
    const header = isType3 ? this.#type3Header(ns, session) : hex('1064000500000001')
    const gre = Buffer.concat([greHeader(random, isType3 ? 0x22eb : 0x88be), header])
    const udpPort = random.pick([53, 123, 443])
    const inner = Buffer.concat([MACS, hex('0800'), ipPacket(udpPort, this.#payload(text))])
    const source = random.integer(1, 2)
    const ip = (isIpv6 ? ipv6 : ipv4)(47, Buffer.concat([gre, inner]), source)
    const outer = Buffer.concat([MACS, ...this.#maybeTag(), hex(isIpv6 ? '86dd' : '0800'), ip])
    const packet = { ...plainPacket(ns, outer, udpPort), isTagged: true }
    return random.next() < 0.1 ? this.#cut(packet, outer.length - inner.length) : packet
  }

  /** Cut in the headers, so that no inner packet can be found, or after them. */
  #cut(packet: VendorPacket, innerAt: number): VendorPacket {
    if (this.#random.next() < 0.5) {
      return {
        ...packet,
        captured: packet.captured.subarray(0, this.#random.integer(34, innerAt)),
        udpPort: 0,
      }
    }
    const end = this.#random.integer(innerAt + 42, packet.captured.length - 1)
    return { ...packet, captured: packet.captured.subarray(0, end) }
  }

  #type3Header(ns: bigint, session: number): Buffer {
    const random = this.#random
    const switchNs = ns + this.#nearby(2_000_000)
    const far = random.next() < 0.1 ? 8n * 86_400n * SECOND_NS : 0n
    switch (random.pick(['upper', 'seconds', 'nanos', 'counter', 'counter', 'counter'])) {
      case 'upper':
        return erspanHeader({
          session,
          granularity: 3,
          low: switchNs + far,
          sub: { platform: random.pick([0, 3, 7]), high: (switchNs + far) >> 32n },
        })
      case 'seconds':
        return erspanHeader({
          session,
          granularity: 2,
          low: random.next() < 0.1 ? SECOND_NS : switchNs % SECOND_NS,
          sub: { platform: random.pick([5, 6]), high: (switchNs + far) / SECOND_NS },
        })
      case 'nanos':
        return erspanHeader({
          session,
          granularity: 2,
          low: random.next() < 0.1 ? SECOND_NS : switchNs % SECOND_NS,
          sub: this.#otherSub(),
        })
      default:
        return this.#counterHeader(ns, session)
    }
  }

  /** Each session's counter starts elsewhere, and each session has its own vendor unit. */
  #counterHeader(ns: bigint, session: number): Buffer {
    const random = this.#random
    const granularity = random.pick([0, 1, 3])
    const sinceNs = ns - this.#startNs + SECOND_NS + BigInt(session) * 3_000_000_000_000n
    const isOdd = random.next() < 0.05
    const counters: Record<number, bigint> = {
      0: (sinceNs + this.#nearby(2_000_000)) / 100_000n + (isOdd ? 20_000n : 0n),
      1: (sinceNs + this.#nearby(2_000_000)) / 100n + (isOdd ? 20_000_000n : 0n),
      3: session % 2 === 0 ? sinceNs : (sinceNs * 5n) / 12n,
    }
    return erspanHeader({ session, granularity, low: counters[granularity] ?? 0n, sub: this.#otherSub() })
  }

  /** None, or one without time information. */
  #otherSub(): ErspanFields['sub'] {
    return this.#random.next() < 0.5 ? undefined : { platform: 1, high: 0x1234n }
  }
}

function hex(digits: string): Buffer {
  return Buffer.from(digits, 'hex')
}

function plainPacket(ns: bigint, captured: Buffer, udpPort: number): VendorPacket {
  const truth = { times: {}, a7130: undefined, c3550Port: undefined, isTagged: false }
  return { ...truth, ns, originalLength: captured.length, captured, udpPort }
}

function tickWord(tick: bigint): Buffer {
  const low = Number(BigInt.asUintN(31, tick))
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(Math.floor(low / 128) * 256 + (low % 128))
  return bytes
}

function ipv4(protocol: number, payload: Buffer, source: number): Buffer {
  const bytes = Buffer.alloc(20)
  bytes.writeUInt8(0x45, 0)
  bytes.writeUInt16BE(20 + payload.length, 2)
  bytes.writeUInt8(64, 8)
  bytes.writeUInt8(protocol, 9)
  bytes.writeUInt32BE(source, 12)
  bytes.writeUInt32BE(0xffff_ffff, 16)
  return Buffer.concat([bytes, payload])
}

function ipv6(nextHeader: number, payload: Buffer, source: number): Buffer {
  const bytes = Buffer.alloc(40)
  bytes.writeUInt8(0x60, 0)
  bytes.writeUInt16BE(payload.length, 4)
  bytes.writeUInt8(nextHeader, 6)
  bytes.writeUInt8(64, 7)
  bytes.writeUInt32BE(source, 20)
  bytes.writeUInt32BE(7, 36)
  return Buffer.concat([bytes, payload])
}

/** With any combination of checksum and key; the sequence number also distinguishes ERSPAN type II from type I. */
function greHeader(random: SeededRandom, protocol: number): Buffer {
  const optional = [0x8000, 0x2000].filter(() => random.next() < 0.3)
  const bytes = Buffer.alloc(8 + 4 * optional.length)
  bytes.writeUInt16BE(
    optional.reduce((flags, flag) => flags | flag, 0x1000),
    0,
  )
  bytes.writeUInt16BE(protocol, 2)
  return bytes
}

interface ErspanFields {
  readonly session: number
  readonly granularity: number
  /** The low 32 bits are sent. */
  readonly low: bigint
  readonly sub: { readonly platform: number; readonly high: bigint } | undefined
}

function erspanHeader({ session, granularity, low, sub }: ErspanFields): Buffer {
  const bytes = Buffer.alloc(sub === undefined ? 12 : 20)
  bytes.writeUInt32BE(0x2064_0000 + session, 0)
  bytes.writeUInt32BE(Number(BigInt.asUintN(32, low)), 4)
  bytes.writeUInt16BE(granularity * 2 + (sub === undefined ? 0 : 1), 10)
  if (sub === undefined) return bytes
  bytes.writeUInt32BE(sub.platform * 2 ** 26, 12)
  bytes.writeUInt32BE(Number(BigInt.asUintN(32, sub.high)), 16)
  return bytes
}
