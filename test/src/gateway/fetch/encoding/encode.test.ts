import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { encode } from '../../../../../src/gateway/fetch/encoding/encode.ts'
import {
  COMPRESSIONS,
  encodingOf,
  PARTIAL_ELEMENTS,
} from '../../../../../src/shared/query/download/query-values.ts'
import { eventually } from '../../../../support/eventually.ts'
import { inChunks, inReusedChunks } from '../../../../support/packets/packet-maker.ts'

/** The parts of zstd-codec that are used; it has no types. */
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
  // Its memory is reused.
  for await (const chunk of chunks) all.push(Buffer.from(chunk))
  return Buffer.concat(all)
}

/** Recognised by the magic number, which hardly occurs in anything else here. */
function framesOf(encoded: Buffer): number {
  let frames = 0
  for (let at = encoded.indexOf(ZSTD_MAGIC); at >= 0; at = encoded.indexOf(ZSTD_MAGIC, at + 1)) frames += 1
  return frames
}

const ZSTD_MAGIC = Buffer.from('28b52ffd', 'hex')

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

  test('the order is kept however the bytes come, and however slowly they are taken', async () => {
    for (const compression of ['fast', 'zstd_fast'] as const) {
      const large = Buffer.concat(Array.from({ length: 24 }, () => DATA))
      const parts: Buffer[] = []
      for await (const part of encode(inReusedChunks(large, 77_777), compression)) {
        parts.push(Buffer.from(part))
        await setImmediate()
      }
      assert.ok(UNPACK[encodingOf(compression)](Buffer.concat(parts)).equals(large), compression)
    }
  })

  test('a part is whole until the second next() after it', async () => {
    const large = Buffer.concat(Array.from({ length: 24 }, () => DATA))
    const parts: Buffer[] = []
    let last: Uint8Array = Buffer.alloc(0)
    for await (const part of encode(inChunks(large, 300_000), 'zstd_fast')) {
      parts.push(Buffer.from(last))
      last = part
    }
    assert.ok(zstdDecompressSync(Buffer.concat([...parts, last])).equals(large))
  })

  for (const [compression, unpack] of [
    ['fast', gunzipSync],
    ['zstd', zstdDecompressSync],
  ] as const) {
    test(`${compression}: what has come goes out while nothing follows, as a whole member or frame`, async () => {
      const next = Promise.withResolvers<Buffer>()
      async function* live() {
        yield DATA.subarray(0, 24)
        yield await next.promise
      }
      const encoded = encode(live(), compression)
      const { value: first } = await encoded.next()
      assert.ok(unpack(first as Uint8Array).equals(DATA.subarray(0, 24)))
      next.resolve(DATA.subarray(24))
      assert.ok(unpack(await collect(encoded)).equals(DATA.subarray(24)))
    })
  }

  test('after any part the cut mark keeps every tool from taking it for the end', async () => {
    const large = Buffer.concat([randomBytes(6_000_000), DATA])
    for (const [compression, tools] of [
      ['fast', ['gzip', 'pigz']],
      ['zstd_fast', ['zstd']],
    ] as const) {
      let sent: Buffer = Buffer.alloc(0)
      for await (const part of encode(inChunks(large, 1_000_000), compression)) {
        sent = Buffer.concat([sent, part])
        const cut = Buffer.concat([sent, PARTIAL_ELEMENTS[encodingOf(compression)]])
        for (const tool of tools) {
          const { status } = spawnSync(tool, ['-t'], { input: cut })
          assert.notEqual(status, 0, `${tool} takes ${cut.length} bytes for a whole file`)
        }
      }
      for (const tool of tools) assert.equal(spawnSync(tool, ['-t'], { input: sent }).status, 0, tool)
    }
  })

  test('a client that leaves ends the compression at once, also of what is slow', async () => {
    const left = new AbortController()
    const reason = new Error('the client has gone')
    async function* endless() {
      for (;;) {
        yield randomBytes(1_000_000)
        await setImmediate()
        left.signal.throwIfAborted()
      }
    }
    const encoded = encode(endless(), 'zstd_ultra', left.signal)
    const first = encoded.next()
    await setImmediate()
    left.abort(reason)
    await assert.rejects(first, reason)
  })

  test('a client that does not read stops the input', async () => {
    let taken = 0
    // Each part is different, because repeated data takes no space in a frame.
    async function* endless() {
      for (;;) {
        taken += 1_000_000
        yield randomBytes(1_000_000)
      }
    }
    const encoded = encode(endless(), 'zstd_fast')
    await encoded.next()
    await eventually(() => taken > 12_000_000, { message: 'all room is filled' })
    await setImmediate()
    // docs/guides/sizing.md: the memory of a merge with four threads, the maximum for one merge.
    assert.ok(taken < 82_000_000, `${taken} bytes were taken`)
    await encoded.return(undefined)
  })

  /** Nine merges whose clients read nothing after a first part, and how many MiB each uses. */
  async function stallNine(compression: 'fast' | 'zstd_fast') {
    async function* endless(count: { taken: number }) {
      for (;;) {
        count.taken += 1
        yield randomBytes(1_048_576)
      }
    }
    const counts = Array.from({ length: 9 }, () => ({ taken: 0 }))
    const stalled = counts.map((count) => encode(endless(count), compression))
    for (const one of stalled) await one.next()
    return { counts, stalled }
  }

  test('from the ninth on, merges at a time take little', async () => {
    const { counts, stalled } = await stallNine('zstd_fast')
    await eventually(() => counts.slice(0, 8).every(({ taken }) => taken > 12), {
      message: 'the first eight have filled their room',
    })
    // Chunks that wait for compression, that are being compressed, that are held, and the one that finds no space.
    assert.ok((counts[8]?.taken ?? 0) <= 6, `${counts[8]?.taken} MiB were taken`)
    for (const one of stalled) await one.return(undefined)
  })

  test('merges that are compressed with gzip count too: beside eight zstd has small frames, until one has ended', async () => {
    const { stalled } = await stallNine('fast')
    const data = Buffer.concat(Array.from({ length: 20 }, () => DATA))
    const small = await collect(encode(inChunks(data, 100_000), 'zstd'))
    assert.ok(zstdDecompressSync(small).equals(data))
    await stalled[0]?.return(undefined)
    const alone = await collect(encode(inChunks(data, 100_000), 'zstd'))
    assert.ok(framesOf(alone) <= 4 && framesOf(small) >= 20, `${framesOf(alone)}, ${framesOf(small)} frames`)
    for (const one of stalled) await one.return(undefined)
  })

  for (const compression of ['none', 'fast', 'zstd'] as const) {
    test(`${compression}: an error of the input is reported after the data before it`, async () => {
      const failure = new Error('the device died')
      async function* broken() {
        yield DATA
        throw failure
      }
      const parts: Uint8Array[] = []
      const all = async () => {
        for await (const part of encode(broken(), compression)) parts.push(part)
      }
      await assert.rejects(all(), failure)
      assert.ok(
        UNPACK[encodingOf(compression)](Buffer.concat(parts)).equals(DATA),
        'what came before is there',
      )
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
