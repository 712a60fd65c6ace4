import { BodyTail } from './body-tail.ts'
import type { Checkpoint } from './receipt.ts'

export interface VerifyOptions {
  /** Where in the whole body the first chunk begins. */
  readonly from: bigint
  /** Ascending, of the whole body. */
  readonly checkpoints: readonly Checkpoint[]
  /** What to throw when the body is another one. */
  readonly changed: () => Error
}

/**
 * The chunks, as long as they are what the checkpoints remember. Past the last of them nothing is
 * compared any more. A body that ends before it is another one too.
 */
export async function* verifiedChunks(
  chunks: AsyncIterable<Uint8Array>,
  { from, checkpoints, changed }: VerifyOptions,
): AsyncGenerator<Uint8Array> {
  const left = checkpoints
    .map(({ bytes, ...rest }) => ({ ...rest, bytes: BigInt(bytes) }))
    .filter(({ bytes, overBytes }) => bytes - BigInt(overBytes) >= from)
  const tail = new BodyTail()
  let position = from
  for await (const chunk of chunks) {
    let seen = 0
    for (let next = left[0]; next !== undefined; next = left[0]) {
      const until = Number(next.bytes - position)
      if (until > chunk.length) break
      tail.add(chunk.subarray(seen, until))
      seen = until
      if (tail.crc32(next.overBytes) !== next.crc32) throw changed()
      left.shift()
    }
    if (left.length > 0) tail.add(chunk.subarray(seen))
    position += BigInt(chunk.length)
    yield chunk
  }
  if (left.length > 0) throw changed()
}
