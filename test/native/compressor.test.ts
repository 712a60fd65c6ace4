import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { COMPRESSION_LEVELS, type Compression } from '../../native/compression.ts'
import { Compressor } from '../../native/compressor.ts'
import { writeImixTraffic } from '../bench/inputs/imix-traffic.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { tempFolder } from '../support/temp-folder.ts'

type Compressing = Exclude<Compression, 'none'>

/** Always the same data: a megabyte of words, of which few are frequent and many are rare. */
function fixedText(): Buffer {
  const random = seededRandom(20_261_123)
  const word = (): string =>
    Array.from({ length: random.integer(2, 9) }, () => String.fromCharCode(97 + random.integer(0, 25))).join(
      '',
    )
  const words = Array.from({ length: 20_000 }, word)
  const text: string[] = []
  for (let bytes = 0; bytes < 1_000_000; bytes += (text.at(-1)?.length ?? 0) + 1)
    text.push(words[Math.floor(words.length * random.next() ** 3)] ?? '')
  return Buffer.from(text.join(' '))
}

async function compressed(compression: Compressing, bytes: Buffer): Promise<Buffer> {
  using compressor = new Compressor(compression)
  const writing = compressor.write(bytes).then(() => compressor.end())
  const parts: Buffer[] = []
  for (let part = await compressor.next(); part !== undefined; part = await compressor.next())
    parts.push(Buffer.from(part))
  await writing
  return Buffer.concat(parts)
}

const TEXT = fixedText()

/** Always the same data: more packets than fit into one zstd frame. */
async function fixedCapture(): Promise<Buffer> {
  await using folder = await tempFolder()
  const path = join(folder.path, 'imix.pcap')
  await writeImixTraffic([path], { seed: 1, startNs: 1_760_000_000_000_000_000n, bytes: 12 << 20 })
  return await readFile(path)
}

test('a compressor that is closed when a part is ready is not asked for what there is', async () => {
  const compressor = new Compressor('fast')
  // Timers run next, and after them messages from other threads.
  await setImmediate()
  const part = compressor.next()
  compressor.end()
  // Meanwhile a thread finishes the part, and the timer that asks for it becomes due.
  const untilMs = performance.now() + 300
  while (performance.now() < untilMs);
  compressor.close()
  await part
  await assert.rejects(compressor.next(), { name: 'AbortError' })
})

for (const words of [
  ['1', '2', '3', '4', '5', '6', '7', '8', '9'],
  ['zstd_fast', 'zstd', 'zstd_ultra'],
] as const) {
  test(`each of ${words.join(', ')} makes less of a text than the one before it`, async (t) => {
    const sizes: number[] = []
    for (const word of words) {
      const body = await compressed(word, TEXT)
      const plain = word.startsWith('zstd') ? zstdDecompressSync(body) : gunzipSync(body)
      assert.ok(plain.equals(TEXT), word)
      sizes.push(body.length)
    }
    t.diagnostic(sizes.join(', '))
    assert.deepEqual(
      sizes,
      [...new Set(sizes)].sort((a, b) => b - a),
    )
  })
}

const capture = fixedCapture()
for (const [word, ...tool] of [
  ['fast', 'gzip', '-1'],
  ['2', 'gzip', '-2'],
  ['3', 'gzip', '-3'],
  ['6', 'gzip', '-6'],
  ['best', 'gzip', '-9'],
  ['zstd', 'zstd', '-3'],
] as const) {
  test(`${word} makes of a capture at most 1 % more than ${tool.join(' ')}`, async () => {
    const [program, level] = tool
    const { stdout } = spawnSync(program, ['-c', level], { input: await capture, maxBuffer: 1 << 26 })
    const { length } = await compressed(word, await capture)
    assert.ok(length <= stdout.length * 1.01, `${length} bytes, and ${stdout.length} by ${program}`)
  })
}

test('fast is the quickest gzip, best the smallest', async () => {
  assert.deepEqual(await compressed('fast', TEXT), await compressed('1', TEXT))
  assert.deepEqual(await compressed('best', TEXT), await compressed('9', TEXT))
})

for (const [word, level, ...others] of [
  ['zstd_fast', '--fast=1', '--fast=2', '-1'],
  ['zstd', '-3', '-2', '-4'],
] as const) {
  test(`${word} makes of a text what zstd ${level} makes, and not ${others.join(' or ')}`, async () => {
    const { length } = await compressed(word, TEXT)
    const [own = 0, ...next] = [level, ...others].map((option) => {
      const { stdout } = spawnSync('zstd', ['-q', '-c', option], { input: TEXT, maxBuffer: 1 << 26 })
      return Math.abs(length - stdout.length)
    })
    assert.ok(own < Math.min(...next), `${own} bytes apart, and ${next} from the others`)
  })
}

test('zstd_ultra is the highest level that zstd has', () => {
  const { stdout } = spawnSync('zstd', ['-H'], { encoding: 'utf8' })
  const highest = /--ultra\b.* (\d+)/.exec(stdout)?.[1]
  assert.equal(COMPRESSION_LEVELS.zstd_ultra.level, Number(highest))
})

test('a byte that changes on the way is noticed by who unpacks it', async () => {
  // Not compressible, so that every byte of it corresponds to one input byte.
  const random = seededRandom(7)
  const plain = Buffer.from(Array.from({ length: 100_000 }, () => random.integer(0, 255)))
  for (const [word, unpack] of [
    ['zstd', zstdDecompressSync],
    ['zstd_fast', zstdDecompressSync],
    ['zstd_ultra', zstdDecompressSync],
    ['fast', gunzipSync],
    ['best', gunzipSync],
  ] as const) {
    const body = await compressed(word, plain)
    const place = body.indexOf(plain.subarray(50_000, 50_010))
    assert.ok(place > 0, `${word}: ${COMPRESSION_LEVELS[word]}`)
    body[place] = (body[place] ?? 0) ^ 1
    assert.throws(() => unpack(body), word)
  }
})
