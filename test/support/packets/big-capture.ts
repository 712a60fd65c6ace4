import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { makePacket, makePcap, makeRecord } from './packet-maker.ts'

export interface BigCapture {
  readonly startNs: bigint
  readonly packets: number
  readonly bytes: number
}

const CAPTURED_LENGTH = 1_008
const GAP_NS = 1_000_000n
/** One write of this many costs much less than one for each. */
const PACKETS_AT_ONCE = 256

/**
 * Writes a PCAP larger than all socket buffers together, so that a client that does not read keeps its download open.
 * One packet per millisecond; each begins with its number.
 */
export async function writeBigCapture(path: string, packets = 65_536): Promise<BigCapture> {
  const startNs = 1_795_000_000_000_000_000n
  const recordOf = (index: number): Buffer =>
    makeRecord(makePacket(startNs + BigInt(index) * GAP_NS, `packet ${index}`, CAPTURED_LENGTH))
  async function* file(): AsyncGenerator<Buffer, void> {
    yield makePcap([])
    for (let from = 0; from < packets; from += PACKETS_AT_ONCE) {
      const count = Math.min(PACKETS_AT_ONCE, packets - from)
      yield Buffer.concat(Array.from({ length: count }, (_, at) => recordOf(from + at)))
    }
  }
  await pipeline(file, createWriteStream(path))
  return { startNs, packets, bytes: 24 + packets * (16 + CAPTURED_LENGTH) }
}
