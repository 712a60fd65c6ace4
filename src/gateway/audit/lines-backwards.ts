import { type FileHandle, open } from 'node:fs/promises'
import { LINE_BYTES_MAX } from './audit-line.ts'

/** A line without its newline, and its offset in the file. */
export interface PlacedLine {
  readonly bytes: Buffer
  readonly offset: number
}

const BLOCK_BYTES = 16_384
const LINE_END = 0x0a

/**
 * Yields the complete lines of a file from its end backwards, one block at a time, so that reading the newest
 * lines of a large file is cheap. Anything after the last newline is not a line. A line longer than any that we
 * write ends the iteration. If lines at the end are later than wanted (`isLater`), most of them are skipped by a
 * binary search of the file.
 */
export async function* linesBackwards(
  path: string,
  isLater?: (head: string) => boolean,
): AsyncGenerator<PlacedLine, void> {
  await using file = await open(path, 'r')
  const { size } = await file.stat()
  let from = isLater === undefined ? size : await endBefore(file, size, isLater)
  /** Bytes that were read but not yielded yet; they begin at offset `from`. */
  let rest: Buffer = Buffer.alloc(0)
  /** End in `rest`, including the newline, of the last line that has not been yielded. */
  let end = -1
  for (;;) {
    if (end === -1) end = rest.lastIndexOf(LINE_END) + 1
    const begin = end < 2 ? 0 : rest.lastIndexOf(LINE_END, end - 2) + 1
    if (end > 0 && (begin > 0 || from === 0)) {
      yield { bytes: rest.subarray(begin, end - 1), offset: from + begin }
      end = begin
      continue
    }
    if (from === 0 || rest.length > LINE_BYTES_MAX) return
    const block = await readBlock(file, Math.max(0, from - BLOCK_BYTES), from)
    rest = Buffer.concat([block, end > 0 ? rest.subarray(0, end) : rest])
    end = end > 0 ? end + block.length : -1
    from -= block.length
  }
}

async function readBlock(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const block = Buffer.alloc(to - from)
  const { bytesRead } = await file.read(block, 0, block.length, from)
  if (bytesRead < block.length) throw new Error('the file became shorter while it was being read')
  return block
}

const HALVED_UNTIL_BYTES = 65_536
/** Long enough to contain a newline, except in a damaged file. */
const PROBE_BYTES = 262_144
/** Bytes at the start of a line that hold its number and time. */
const HEAD_BYTES = 80

/** The end of some line after which all lines are later, close to the first of those. */
async function endBefore(
  file: FileHandle,
  size: number,
  isLater: (head: string) => boolean,
): Promise<number> {
  let low = 0
  let high = size
  while (high - low > HALVED_UNTIL_BYTES) {
    const middle = Math.floor((low + high) / 2)
    const block = await readBlock(file, middle, Math.min(middle + PROBE_BYTES, size))
    const begin = block.indexOf(LINE_END) + 1
    if (begin === 0 || middle + begin >= high) return high
    if (isLater(block.toString('latin1', begin, begin + HEAD_BYTES))) high = middle + begin
    else low = middle + begin
  }
  return high
}
