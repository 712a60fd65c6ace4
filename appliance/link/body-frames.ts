/**
 * A body of unknown length on the recorder's socket, as frames: a length (4 bytes, little-endian), followed by that
 * many bytes. A frame of length 0 ends the body. The end of the connection does not show that the body is complete,
 * because the kernel also closes the connections of a killed process.
 */
import { CapfleetError } from '../../src/shared/base/error.ts'

const LENGTH_BYTES = 4
/** A frame is passed on in pieces, so that its length needs no limit but that of its field. */
const FRAME_BYTES_MAX = 0xffff_ffff

export const END_FRAME: Uint8Array = new Uint8Array(LENGTH_BYTES)

/** The length that precedes these bytes. REQUIRES: there are some. */
export function frameHead(bytes: Uint8Array): Uint8Array {
  if (bytes.length === 0 || bytes.length > FRAME_BYTES_MAX) throw new RangeError('a frame of this length')
  const head = Buffer.alloc(LENGTH_BYTES)
  head.writeUInt32LE(bytes.length)
  return head
}

/** The bytes of all frames. Fails with store-unavailable if the input ends before the frame that ends the body. */
export async function* readFrames(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let head = Buffer.alloc(0)
  let left = 0
  for await (const piece of input) {
    let rest = piece
    while (rest.length > 0) {
      if (left > 0) {
        const bytes = rest.subarray(0, left)
        left -= bytes.length
        rest = rest.subarray(bytes.length)
        yield bytes
        continue
      }
      const missing = LENGTH_BYTES - head.length
      head = Buffer.concat([head, rest.subarray(0, missing)])
      rest = rest.subarray(missing)
      if (head.length < LENGTH_BYTES) continue
      left = head.readUInt32LE()
      head = Buffer.alloc(0)
      if (left === 0) return
    }
  }
  throw new CapfleetError('store-unavailable', 'the connection was closed before the end of the file')
}
