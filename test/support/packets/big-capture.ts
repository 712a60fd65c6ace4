import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { makePcap } from './packet-maker.ts'

export interface BigCapture {
  readonly startNs: bigint
  readonly packets: number
  readonly bytes: number
}

const CAPTURED_LENGTH = 1_008
const RECORD_BYTES = 16 + CAPTURED_LENGTH
const GAP_NS = 1_000_000n
/** Many tests write millions of packets. */
const WRITTEN_AT_ONCE = 1_024

/**
 * Writes a PCAP larger than all socket buffers together, so that a client that does not read keeps its download open.
 * One packet per millisecond; each begins with its number.
 */
export async function writeBigCapture(path: string, packets = 65_536): Promise<BigCapture> {
  const startNs = 1_795_000_000_000_000_000n
  async function* file(): AsyncGenerator<Buffer, void> {
    yield makePcap([])
    for (let first = 0; first < packets; first += WRITTEN_AT_ONCE) {
      const records = Buffer.alloc(Math.min(WRITTEN_AT_ONCE, packets - first) * RECORD_BYTES)
      for (let at = 0; at < records.length; at += RECORD_BYTES) {
        const index = first + at / RECORD_BYTES
        writeRecord(records, at, { ns: startNs + BigInt(index) * GAP_NS, text: `packet ${index}` })
      }
      yield records
    }
  }
  await pipeline(file, createWriteStream(path))
  return { startNs, packets, bytes: 24 + packets * RECORD_BYTES }
}

/** As makeRecord makes it. */
function writeRecord(to: Buffer, at: number, { ns, text }: { readonly ns: bigint; readonly text: string }) {
  to.writeUInt32LE(Number(ns / 1_000_000_000n), at)
  to.writeUInt32LE(Number(ns % 1_000_000_000n), at + 4)
  to.writeUInt32LE(CAPTURED_LENGTH, at + 8)
  to.writeUInt32LE(CAPTURED_LENGTH, at + 12)
  to.write(text, at + 16)
}
