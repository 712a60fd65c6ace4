import assert from 'node:assert/strict'
import { test } from 'node:test'
import { END_FRAME, frameHead, readFrames } from '../../../appliance/link/body-frames.ts'
import { seededRandom } from '../../support/seeded-random.ts'

/** Cut into pieces of this many bytes. */
async function* pieces(bytes: Buffer, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

async function read(input: AsyncIterable<Buffer>): Promise<Buffer> {
  const read: Buffer[] = []
  for await (const bytes of readFrames(input)) read.push(bytes)
  return Buffer.concat(read)
}

const random = seededRandom()
const bodies = [1, 300, 7, 5_000].map((length) =>
  Buffer.from(Array.from({ length }, () => random.integer(0, 255))),
)
const sent = Buffer.concat([...bodies.flatMap((body) => [frameHead(body), body]), END_FRAME])

test('a body arrives as it was sent, in pieces of any size', async () => {
  for (const pieceBytes of [1, 2, 3, 5, 4_096, sent.length]) {
    assert.deepEqual(await read(pieces(sent, pieceBytes)), Buffer.concat(bodies))
  }
  assert.deepEqual(await read(pieces(Buffer.from(END_FRAME), 1)), Buffer.alloc(0))
})

test('a connection that ends before the frame that ends the body is not its end', async () => {
  for (const length of [0, 3, 4, 5, 200, sent.length - 5, sent.length - 1]) {
    await assert.rejects(read(pieces(sent.subarray(0, length), 64)), { code: 'store-unavailable' })
  }
})
