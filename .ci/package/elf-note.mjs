// Adds a note to an ELF program, as a segment that is loaded with it: where Node.js looks for the program that it
// should run (https://nodejs.org/docs/latest-v24.x/api/single-executable-applications.html). Not by postject, which that
// page names: it has only alpha versions, and this much of the format is enough for Linux.

const LITTLE_ENDIAN_64 = '7f454c460201'
const TYPE_AT = 16
const HEADERS_AT = 32
const HEADER_BYTES_AT = 54
const HEADER_COUNT_AT = 56
const HEADER_BYTES = 56
const EXECUTABLE = 2
const [LOAD, NOTE, TABLE] = [1, 4, 6]
const READABLE = 4
const NOTE_TYPE = 0
const NOTE_ALIGN = 4
/** The largest page of any machine that we build for: arm64 may have 64 KiB. */
const PAGE = 65_536n

/**
 * The bytes of `program` with the note. The table of segments keeps its place and its size, so that old kernels find
 * it too: the new segment and its note take the places of the entries that describe the table itself and the notes of
 * the linker, which nothing reads at run time in a program with a fixed address.
 */
export function withNote(program, name, content) {
  const segments = segmentsOf(program)
  const note = noteOf(name, content)
  const end = segments
    .filter(({ type }) => type === LOAD)
    .reduce(
      (most, { address, memoryBytes }) => (address + memoryBytes > most ? address + memoryBytes : most),
      0n,
    )
  const offset = roundUp(BigInt(program.length))
  const place = { flags: READABLE, offset, address: roundUp(end), bytes: BigInt(note.length) }
  const loaded = { ...place, type: LOAD, memoryBytes: place.bytes, align: PAGE }
  const described = { ...loaded, type: NOTE, align: BigInt(NOTE_ALIGN) }
  const others = segments.filter(({ type }) => type !== TABLE && type !== NOTE)
  const last = others.findLastIndex(({ type }) => type === LOAD)
  const changed = [...others.slice(0, last + 1), loaded, ...others.slice(last + 1), described]
  if (changed.length > segments.length) throw new Error('the program has no entries of segments to reuse')
  const result = Buffer.concat([program, Buffer.alloc(Number(offset) - program.length), note])
  result.writeUInt16LE(changed.length, HEADER_COUNT_AT)
  for (const [index, segment] of changed.entries())
    writeSegment(result, tableAt(program) + index * HEADER_BYTES, segment)
  return result
}

function segmentsOf(program) {
  const isKnown =
    program.toString('hex', 0, LITTLE_ENDIAN_64.length / 2) === LITTLE_ENDIAN_64 &&
    program.readUInt16LE(TYPE_AT) === EXECUTABLE &&
    program.readUInt16LE(HEADER_BYTES_AT) === HEADER_BYTES
  if (!isKnown) throw new Error('not an ELF program of 64 bits, little-endian, with a fixed address')
  return Array.from({ length: program.readUInt16LE(HEADER_COUNT_AT) }, (_, index) =>
    readSegment(program, tableAt(program) + index * HEADER_BYTES),
  )
}

function tableAt(program) {
  return Number(program.readBigUInt64LE(HEADERS_AT))
}

function readSegment(program, at) {
  return {
    type: program.readUInt32LE(at),
    flags: program.readUInt32LE(at + 4),
    offset: program.readBigUInt64LE(at + 8),
    address: program.readBigUInt64LE(at + 16),
    bytes: program.readBigUInt64LE(at + 32),
    memoryBytes: program.readBigUInt64LE(at + 40),
    align: program.readBigUInt64LE(at + 48),
  }
}

function writeSegment(program, at, { type, flags, offset, address, bytes, memoryBytes, align }) {
  program.writeUInt32LE(type, at)
  program.writeUInt32LE(flags, at + 4)
  // Its physical address is the virtual one.
  for (const [index, value] of [offset, address, address, bytes, memoryBytes, align].entries())
    program.writeBigUInt64LE(value, at + 8 + index * 8)
}

function noteOf(name, content) {
  const head = Buffer.alloc(12)
  head.writeUInt32LE(name.length + 1, 0)
  head.writeUInt32LE(content.length, 4)
  head.writeUInt32LE(NOTE_TYPE, 8)
  return Buffer.concat([head, padded(Buffer.from(`${name}\0`)), padded(content)])
}

function padded(bytes) {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & (NOTE_ALIGN - 1))])
}

function roundUp(value) {
  return ((value + PAGE - 1n) / PAGE) * PAGE
}
