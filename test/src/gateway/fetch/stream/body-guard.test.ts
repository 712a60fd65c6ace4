import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { constants, createGzip, gzipSync, zstdCompressSync } from 'node:zlib'
import { CompressedGuard } from '../../../../../src/gateway/fetch/stream/body-guard.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { makePacket, makePcap } from '../../../../support/packets/packet-maker.ts'

const PCAP = makePcap(Array.from({ length: 30 }, (_, n) => makePacket(BigInt(n), `packet ${n}`, 40 + n)))
const COMPRESS = { gzip: gzipSync, zstd: zstdCompressSync } as const
type Kind = keyof typeof COMPRESS

/** Feeds `bytes` in pieces of `size`; returns undefined if the guard accepts them as a whole file. */
async function verdict(kind: Kind, bytes: Buffer, size = bytes.length): Promise<CapfleetError | undefined> {
  using guard = new CompressedGuard('d0', kind, { padding: 'end' })
  try {
    for (let at = 0; at < bytes.length; at += size) await guard.feed([bytes.subarray(at, at + size)])
    await guard.finish()
    return undefined
  } catch (error) {
    assert.ok(error instanceof CapfleetError && error.code === 'device-protocol', String(error))
    return error
  }
}

for (const kind of ['gzip', 'zstd'] as const) {
  const whole = COMPRESS[kind](PCAP)
  const parts = [0, 24, 510, 511, PCAP.length].map((at, index, all) => PCAP.subarray(all[index - 1] ?? 0, at))
  const many = Buffer.concat(parts.map((part) => COMPRESS[kind](part)))

  test(`${kind}: takes one and several members, in pieces of any size`, async () => {
    for (const bytes of [whole, many]) {
      for (const size of [1, 2, 3, 7, 64, bytes.length])
        assert.equal(await verdict(kind, bytes, size), undefined)
    }
  })

  test(`${kind}: a file cut at any byte is not whole`, async () => {
    for (const bytes of [whole, many]) {
      for (let cut = 0; cut < bytes.length; cut++) {
        const error = await verdict(kind, bytes.subarray(0, cut), 50)
        // Between two members, the file is whole only if the PCAP inside is. Here that is only after its header.
        const isHeaderOnly = bytes === many && cut === lengthOf(kind, parts.slice(0, 2))
        if (isHeaderOnly || cut === lengthOf(kind, parts.slice(0, 1))) continue
        assert.ok(error, `cut at ${cut} of ${bytes.length}`)
      }
    }
  })

  test(`${kind}: damage and bytes after the end are detected`, async () => {
    for (const extra of ['garbage', '\x01'])
      assert.ok(await verdict(kind, Buffer.concat([whole, Buffer.from(extra)])))
    const damaged = Buffer.from(whole)
    damaged[damaged.length - 5] = (damaged[damaged.length - 5] ?? 0) ^ 0xff
    assert.ok(await verdict(kind, damaged))
  })
}

const BOMB = 'cat - <(head -c 400M /dev/zero) | zstd -qc'

test('a bomb is given up early and in little memory', async () => {
  const zeros = Buffer.alloc(1_048_576)
  const gzip = createGzip({ level: 9 })
  const packed = buffer(gzip)
  gzip.write(PCAP)
  for (let mib = 0; mib < 400; mib++) gzip.write(zeros)
  gzip.end()
  const bombs = [
    ['gzip', await packed],
    ['zstd', execFileSync('bash', ['--norc', '-c', BOMB], { input: PCAP, maxBuffer: 1e9 })],
  ] as const
  for (const [kind, bytes] of bombs) {
    const before = process.memoryUsage().rss
    const error = await verdict(kind, bytes, 16_384)
    assert.match(String(error), /decompresses to more than 200 times/)
    assert.ok(process.memoryUsage().rss - before < 64 * 1_048_576)
  }
})

test('a zstd frame that lacks its end, but no packet, is not whole', async () => {
  const params = { [constants.ZSTD_c_checksumFlag]: 1 }
  const bytes = zstdCompressSync(PCAP, { params })
  for (const missing of [1, 2, 3, 4]) assert.ok(await verdict('zstd', bytes.subarray(0, -missing)))
})

test('a zstd window beyond 128 MiB is refused', async () => {
  const script = 'head -c 8M /dev/zero | zstd -qc --ultra --long=28 -1'
  const bytes = execFileSync('bash', ['--norc', '-c', script], { maxBuffer: 1e9 })
  assert.match(String(await verdict('zstd', bytes)), /sent broken zstd/)
})

function lengthOf(kind: Kind, parts: readonly Buffer[]): number {
  return parts.reduce((sum, part) => sum + COMPRESS[kind](part).length, 0)
}

test('padding inside of what is compressed is refused where that is passed on as it is', async () => {
  const body = gzipSync(Buffer.concat([makePcap([makePacket(1n, 'one')]), Buffer.alloc(4_096)]))
  const judge = async (padding: 'end' | 'fault' | undefined) => {
    using guard = new CompressedGuard('d0', 'gzip', { padding })
    await guard.feed([body])
    await guard.finish()
  }
  await assert.rejects(judge('fault'), /device d0 sent zeros instead of a record/)
  await judge('end')
  await judge(undefined)
})
