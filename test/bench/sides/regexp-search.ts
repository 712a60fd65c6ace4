/**
 * The obvious JavaScript solution: `node regexp-search.ts <pattern> <PCAP file> <output>` copies the packets whose
 * bytes, as Latin-1, match the pattern.
 */
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'

const [pattern = '', path = '', target = ''] = process.argv.slice(2)
const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const OUTPUT_BYTES = 1_048_576
/** Reads of more than 2 GiB at once fail, and readFileSync rejects files of that size. */
const READ_BYTES = 1_073_741_824

const search = new RegExp(pattern, 's')
const input = readWhole(path)
const output = openSync(target, 'w')
let found: Buffer[] = [input.subarray(0, FILE_HEADER_BYTES)]
let foundBytes = 0
for (let at = FILE_HEADER_BYTES; at < input.byteLength; ) {
  const end = at + RECORD_HEADER_BYTES + input.readUInt32LE(at + 8)
  if (search.test(input.toString('latin1', at + RECORD_HEADER_BYTES, end))) {
    found.push(input.subarray(at, end))
    foundBytes += end - at
    if (foundBytes > OUTPUT_BYTES) flush()
  }
  at = end
}
flush()
closeSync(output)

function readWhole(file: string): Buffer {
  const descriptor = openSync(file, 'r')
  const bytes = Buffer.allocUnsafe(fstatSync(descriptor).size)
  for (let at = 0; at < bytes.byteLength; )
    at += readSync(descriptor, bytes, at, Math.min(READ_BYTES, bytes.byteLength - at), at)
  closeSync(descriptor)
  return bytes
}

function flush(): void {
  const bytes = Buffer.concat(found)
  for (let at = 0; at < bytes.byteLength; ) at += writeSync(output, bytes, at)
  found = []
  foundBytes = 0
}
