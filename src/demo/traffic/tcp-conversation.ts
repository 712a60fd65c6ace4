import type { FlowPacket, FlowPath } from './flow-packet.ts'
import { tcpPacket } from './packet-bytes.ts'
import type { Random } from './random.ts'

const FIN = 1
const SYN = 2
const PSH = 8
const ACK = 16
/** 1500 bytes of MTU without IPv6 and TCP headers and the timestamp option. */
const SEGMENT_BYTES = 1428
const NO_PAYLOAD = Buffer.alloc(0)
const WINDOW = 502

/** What one side has sent so far. */
interface Side {
  sequence: number
  identification: number
  readonly clockOffsetMs: number
  /** The last timestamp option it sent, which the other side echoes. */
  sentTimestamp: number
}

/**
 * Builds the packets of one TCP connection: handshake, data with acknowledgments and timestamps, close. Sequence
 * numbers are correct and nothing is lost or retransmitted. Time advances with each call; an acknowledgment never
 * precedes what it acknowledges.
 */
export class TcpConversation {
  readonly packets: FlowPacket[] = []
  readonly #path: FlowPath
  readonly #random: Random
  readonly #sides: { readonly client: Side; readonly server: Side }
  #nowNs = 0n

  constructor(path: FlowPath, random: Random) {
    this.#path = path
    this.#random = random
    const side = () => ({
      sequence: random.uint32(),
      identification: random.below(0x10000),
      clockOffsetMs: random.below(0x40000000),
      sentTimestamp: 0,
    })
    this.#sides = { client: side(), server: side() }
  }

  open(): void {
    this.#emit('client', SYN, NO_PAYLOAD)
    this.#nowNs += this.#path.roundTripNs
    this.#emit('server', SYN | ACK, NO_PAYLOAD)
    this.#step()
    this.#emit('client', ACK, NO_PAYLOAD)
  }

  /** Sends nothing for this long. */
  pause(ns: bigint): void {
    this.#nowNs += ns
  }

  /** One side sends; the other acknowledges every second segment, and the last. */
  send(from: 'client' | 'server', payload: Buffer): void {
    const to = from === 'client' ? 'server' : 'client'
    let sinceAck = 0
    for (let start = 0; start < payload.byteLength; start += SEGMENT_BYTES) {
      const isLast = start + SEGMENT_BYTES >= payload.byteLength
      this.#step()
      this.#emit(from, isLast ? PSH | ACK : ACK, payload.subarray(start, start + SEGMENT_BYTES))
      sinceAck++
      if (sinceAck < 2 && !isLast) continue
      // To the server and back; the client is next to the capture point.
      if (from === 'client') this.#nowNs += this.#path.roundTripNs
      this.#step()
      this.#emit(to, ACK, NO_PAYLOAD)
      sinceAck = 0
    }
  }

  close(): void {
    this.#step()
    this.#emit('client', FIN | ACK, NO_PAYLOAD)
    this.#nowNs += this.#path.roundTripNs
    this.#emit('server', FIN | ACK, NO_PAYLOAD)
    this.#step()
    this.#emit('client', ACK, NO_PAYLOAD)
  }

  /** A few microseconds, as between two packets of one host. */
  #step(): void {
    this.#nowNs += BigInt(this.#random.between(2_000, 40_000))
  }

  #emit(from: 'client' | 'server', flags: number, payload: Buffer): void {
    const to = from === 'client' ? 'server' : 'client'
    const side = this.#sides[from]
    const opening = (flags & SYN) !== 0
    const bytes = tcpPacket(
      {
        from: this.#path[from],
        to: this.#path[to],
        vlan: this.#path.vlan,
        identification: side.identification++,
      },
      {
        sequence: side.sequence,
        acknowledgment: (flags & ACK) === 0 ? 0 : this.#sides[to].sequence,
        flags,
        window: opening ? 64_240 : WINDOW,
        options: this.#options(from, flags),
        payload,
      },
    )
    const used = payload.byteLength + ((flags & (SYN | FIN)) === 0 ? 0 : 1)
    side.sequence = (side.sequence + used) >>> 0
    this.packets.push({ offsetNs: this.#nowNs, fromClient: from === 'client', bytes })
  }

  /** MSS, SACK permitted, timestamps and window scale when opening; timestamps afterwards. */
  #options(from: 'client' | 'server', flags: number): Buffer {
    const side = this.#sides[from]
    const peer = this.#sides[from === 'client' ? 'server' : 'client']
    const opening = (flags & SYN) !== 0
    const options = opening
      ? Buffer.from([2, 4, 0x05, 0xa0, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7])
      : Buffer.from([1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0])
    const at = opening ? 8 : 4
    side.sentTimestamp = side.clockOffsetMs + Number(this.#nowNs / 1_000_000n)
    options.writeUInt32BE(side.sentTimestamp, at)
    if ((flags & ACK) !== 0) options.writeUInt32BE(peer.sentTimestamp, at + 4)
    return options
  }
}
