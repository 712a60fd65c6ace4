/**
 * Reads a PCAP file from its input and prints one line of JSON that is the same for the same packets: their number,
 * their times in order, and their contents regardless of the order of packets, because programs that merge may order
 * packets of one instant in any way. Byte order, precision of the file and snaplen do not count, but a time that lost
 * its nanoseconds does. Also prints the first and the last time, and the bytes of the records.
 */
import { hash } from 'node:crypto'

const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const MAGIC_NANOS = 0xa1b23c4d
const MAGIC_MICROS = 0xa1b2c3d4

let rest: Buffer = Buffer.alloc(0)
let nanosPerUnit = 0
const digest = { packets: 0, contents: 0, times: 0 }
let bytes = 0
let firstNs = -1n
let lastNs = 0n

for await (const chunk of process.stdin) {
  rest = take(rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk]))
}
if (nanosPerUnit === 0 || rest.byteLength > 0) throw new Error('the input is no whole PCAP file')
process.stdout.write(
  `${JSON.stringify({ digest, bytes, firstNs: String(firstNs < 0n ? 0n : firstNs), lastNs: String(lastNs) })}\n`,
)

/** Reads all whole records; returns the rest. */
function take(buffer: Buffer): Buffer {
  let at = 0
  if (nanosPerUnit === 0) {
    if (buffer.byteLength < FILE_HEADER_BYTES) return buffer
    nanosPerUnit = unitOf(buffer.readUInt32LE(0))
    at = FILE_HEADER_BYTES
  }
  while (at + RECORD_HEADER_BYTES <= buffer.byteLength) {
    const end = at + RECORD_HEADER_BYTES + buffer.readUInt32LE(at + 8)
    if (end > buffer.byteLength) break
    takeRecord(buffer, at, end)
    at = end
  }
  return buffer.subarray(at)
}

function unitOf(magic: number): number {
  if (magic === MAGIC_NANOS) return 1
  if (magic === MAGIC_MICROS) return 1_000
  throw new Error('the input is no little-endian PCAP file')
}

function takeRecord(buffer: Buffer, at: number, end: number): void {
  const [seconds, part] = [buffer.readUInt32LE(at), buffer.readUInt32LE(at + 4) * nanosPerUnit]
  digest.packets += 1
  digest.times = (Math.imul(Math.imul(digest.times, 0x01000193) ^ seconds, 0x01000193) ^ part) >>> 0
  const content = hash('md5', buffer.subarray(at + 8, end), 'buffer')
  digest.contents = (digest.contents + content.readUIntBE(0, 6)) % 2 ** 48
  bytes += end - at
  const timeNs = BigInt(seconds) * 1_000_000_000n + BigInt(part)
  if (firstNs < 0n || timeNs < firstNs) firstNs = timeNs
  if (timeNs > lastNs) lastNs = timeNs
}
