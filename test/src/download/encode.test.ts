import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { describe, test } from 'node:test'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { encode, SLICES } from '../../../src/download/encode.ts'
import { COMPRESSIONS, encodingOf } from '../../../src/query/query-values.ts'
import { eventually } from '../../support/eventually.ts'
import { inChunks, inReusedChunks } from '../../support/packets/packet-maker.ts'

/** What is used of zstd-codec, which has no types. */
interface Codec {
  readonly Streaming: new () => { decompress(bytes: Uint8Array): Uint8Array }
}
const { ZstdCodec }: { readonly ZstdCodec: { run(ready: (codec: Codec) => void): void } } = createRequire(
  import.meta.url,
)('zstd-codec')

const DATA = Buffer.concat([randomBytes(300_000), Buffer.alloc(700_000, 'packet ')])
const UNPACK = { none: (bytes: Buffer) => bytes, gzip: gunzipSync, zstd: zstdDecompressSync }

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

describe('encode', () => {
  for (const compression of COMPRESSIONS) {
    test(`${compression} is decoded to the same bytes`, async () => {
      const encoded = await collect(encode(inChunks(DATA, 100_000), compression))
      assert.ok(UNPACK[encodingOf(compression)](encoded).equals(DATA))
    })
  }

  test('zstd carries a checksum and asks a reader for no more than 8 MiB', async () => {
    for (const compression of ['zstd', 'zstd_fast', 'zstd_ultra'] as const) {
      const encoded = await collect(encode(inChunks(DATA, 100_000), compression))
      const descriptor = encoded.readUInt8(4)
      assert.equal(descriptor & 4, 4, 'checksum flag')
      const windowLog = 10 + (encoded.readUInt8(5) >> 3)
      assert.ok((descriptor & 0x20) !== 0 || windowLog <= 23, `windowLog ${windowLog}`)
    }
  })

  test('a decoder that is not Node reads all frames of zstd, also the last one', async () => {
    const codec = await new Promise<Codec>((resolve) => ZstdCodec.run(resolve))
    const megabyte = 1_048_576
    for (const bytes of [0, 1, megabyte - 1, megabyte, megabyte + 1, 3 * megabyte]) {
      const data = Buffer.concat([DATA, DATA, DATA, DATA]).subarray(0, bytes)
      for (const compression of ['zstd', 'zstd_fast'] as const) {
        const encoded = await collect(encode(inChunks(data, 100_000), compression))
        assert.ok(data.equals(new codec.Streaming().decompress(encoded)), `${compression}: ${bytes} bytes`)
      }
    }
  })

  test('the file depends on the bytes, not on how or when they come', async () => {
    for (const compression of ['fast', 'zstd_fast'] as const) {
      const large = Buffer.concat([DATA, DATA, DATA])
      const once = await collect(encode(inChunks(large, large.length), compression))
      async function* slowly() {
        for await (const chunk of inReusedChunks(large, 77_777)) {
          yield chunk
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
      assert.ok(once.equals(await collect(encode(slowly(), compression))), compression)
      assert.ok(UNPACK[encodingOf(compression)](once).equals(large))
    }
  })

  test('the memory of slices is given back, however it ends', async () => {
    // The thread pool tells nobody when it has done what nobody waits for.
    const isBack = (): Promise<void> =>
      eventually(() => SLICES.takenBytes === 0, { limitMs: 10_000, message: 'slices are given back' })
    async function* input(end?: Error) {
      for (let count = 0; count < 40; count++) yield DATA.subarray(0, 100_000)
      if (end !== undefined) throw end
    }
    await collect(encode(input(), 'zstd_fast'))
    await isBack()
    for await (const _ of encode(input(), 'zstd_fast')) break
    await isBack()
    await assert.rejects(collect(encode(input(new Error('broken')), 'zstd_fast')))
    await isBack()
  })

  for (const compression of ['none', 'fast', 'zstd'] as const) {
    test(`${compression}: an error of the input comes out, and the output has no clean end`, async () => {
      const failure = new Error('the device died')
      async function* broken() {
        yield DATA
        throw failure
      }
      await assert.rejects(collect(encode(broken(), compression)), failure)
    })

    test(`${compression}: leaving early ends the input`, async () => {
      const ended = Promise.withResolvers<void>()
      async function* endless() {
        try {
          for (;;) yield randomBytes(100_000)
        } finally {
          ended.resolve()
        }
      }
      for await (const _ of encode(endless(), compression)) break
      await ended.promise
    })
  }
})
