import type { FlowPacket, FlowPath } from '../flow-packet.ts'
import { udpPacket } from '../packet-bytes.ts'
import type { Random } from '../random.ts'

const SYMBOLS = ['ACME', 'GLOBEX', 'INITECH', 'HOOLI', 'UMBRL', 'WAYNE', 'STARK', 'TYRELL']
const ORDER_BYTES = 36

/**
 * A multicast feed in the shape of an exchange's: packets with a session name and a running
 * sequence number, each with some fixed-size binary order messages. Packets come in bursts.
 */
export class MarketDataFeed {
  readonly #session: string
  #sequence = 1n
  #orderReference = 1n

  /** `session` has ten characters. */
  constructor(session: string) {
    this.#session = session
  }

  /** The next burst: 10 to 60 packets within milliseconds. */
  burst(path: FlowPath, random: Random, startNs: bigint): FlowPacket[] {
    const { client: source, server: group, vlan } = path
    let identification = random.below(0x10000)
    let offsetNs = 0n
    return Array.from({ length: random.between(10, 60) }, () => {
      offsetNs += BigInt(random.between(3_000, 400_000))
      const payload = this.#messages(random, startNs + offsetNs)
      const bytes = udpPacket({ from: source, to: group, vlan, identification: identification++ }, payload)
      return { offsetNs, fromClient: true, bytes }
    })
  }

  #messages(random: Random, ns: bigint): Buffer {
    const count = random.between(1, 9)
    const head = Buffer.alloc(20)
    head.write(this.#session, 'latin1')
    head.writeBigUInt64BE(this.#sequence, 10)
    head.writeUInt16BE(count, 18)
    this.#sequence += BigInt(count)
    return Buffer.concat([head, ...Array.from({ length: count }, () => this.#addOrder(random, ns))])
  }

  /** Length, type, stock, time since midnight, order, side, shares, symbol, price. */
  #addOrder(random: Random, ns: bigint): Buffer {
    const message = Buffer.alloc(2 + ORDER_BYTES)
    const symbol = random.below(SYMBOLS.length)
    message.writeUInt16BE(ORDER_BYTES, 0)
    message.write('A', 2)
    message.writeUInt16BE(symbol, 3)
    message.writeUIntBE(Number(ns % 86_400_000_000_000n), 7, 6)
    message.writeBigUInt64BE(this.#orderReference++, 13)
    message.write(random.chance(0.5) ? 'B' : 'S', 21)
    message.writeUInt32BE(random.between(1, 50) * 100, 22)
    message.write((SYMBOLS[symbol] ?? '').padEnd(8), 26)
    message.writeUInt32BE(random.between(10_000, 999_999), 34)
    return message
  }
}
