/** PCAP bytes for tests, built without src/gateway/pcap so that a mistake there is not repeated here. */
import type { ChunkStream } from '../../../src/gateway/pcap/pcap-input.ts'
import type { PcapRecord } from './pcap-records.ts'

export interface MadePcapOptions {
  /** Default true. With false, timestamps are truncated to microseconds. */
  readonly nanoseconds?: boolean
  readonly linkType?: number
  readonly snaplen?: number
  /** Default: little-endian. */
  readonly isBigEndian?: boolean
}

/** A whole PCAP file. */
export function makePcap(records: readonly PcapRecord[], options: MadePcapOptions = {}): Buffer {
  const { nanoseconds = true, linkType = 1, snaplen = 262_144, isBigEndian = false } = options
  const magic = nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4
  const header = words([magic, 0, 0, 0, snaplen, linkType], isBigEndian)
  // The version is two numbers of 16 bits.
  header.set(isBigEndian ? [0, 2, 0, 4] : [2, 0, 4, 0], 4)
  return Buffer.concat([header, ...records.map((record) => makeRecord(record, nanoseconds, isBigEndian))])
}

/** One record: 16-byte header and the captured bytes. */
export function makeRecord(
  { ns, originalLength, captured }: PcapRecord,
  nanoseconds = true,
  isBigEndian = false,
): Buffer {
  const fractionNs = ns % 1_000_000_000n
  const fraction = nanoseconds ? fractionNs : fractionNs / 1000n
  const seconds = ns / 1_000_000_000n
  const header = [Number(seconds), Number(fraction), captured.byteLength, originalLength]
  return Buffer.concat([words(header, isBigEndian), captured])
}

function words(values: readonly number[], isBigEndian: boolean): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt32LE(value, 4 * index)
  return isBigEndian ? bytes.swap32() : bytes
}

/** A packet whose captured bytes identify it; nothing was cut off. */
export function makePacket(ns: bigint, text: string, capturedLength = text.length): PcapRecord {
  const captured = Buffer.alloc(capturedLength)
  captured.write(text)
  return { ns, originalLength: capturedLength, captured }
}

/** The bytes in pieces of at most `chunkBytes`, the way a socket delivers them. */
export async function* inChunks(bytes: Buffer, chunkBytes: number): AsyncGenerator<Buffer, void> {
  for (let start = 0; start < bytes.byteLength; start += chunkBytes) {
    yield bytes.subarray(start, start + chunkBytes)
  }
}

/** The same like a socket that reuses its buffer: a chunk is overwritten when the next is requested. */
export async function* inReusedChunks(bytes: Buffer, chunkBytes: number): AsyncGenerator<Buffer, void> {
  const reused = Buffer.alloc(chunkBytes)
  for (let start = 0; start < bytes.byteLength; start += chunkBytes) {
    yield reused.subarray(0, bytes.copy(reused, 0, start, start + chunkBytes))
    reused.fill(0xaa)
  }
}

/** The same, but a requested chunk has only arrived once `hasArrived` returns true. */
export function inArrivingChunks(bytes: Buffer, chunkBytes: number, hasArrived: () => boolean): ChunkStream {
  const reused = Buffer.alloc(chunkBytes)
  let start = 0
  const chunk = () => {
    const length = bytes.copy(reused.fill(0xaa), 0, start, start + chunkBytes)
    start += length
    return length > 0 ? reused.subarray(0, length) : undefined
  }
  return {
    take: () => (hasArrived() ? chunk() : undefined),
    next: async () => {
      const value = chunk()
      return value === undefined ? { done: true, value } : { done: false, value }
    },
  }
}
