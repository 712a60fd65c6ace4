import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { linesBackwards } from '../../../../src/gateway/audit/lines-backwards.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

test('gives all lines of any file from its end on, with their places', async (t) => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'lines')
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 200; round += 1) {
    const longest = random.pick([3, 300, 40_000])
    const lines = Array.from({ length: random.integer(0, 12) }, (_, i) =>
      String(i % 10).repeat(random.integer(0, longest)),
    )
    const torn = 't'.repeat(random.pick([0, 0, 5, 20_000]))
    const text = `${lines.map((line) => `${line}\n`).join('')}${torn}`
    await writeFile(path, text)
    const found: string[] = []
    for await (const { bytes, offset } of linesBackwards(path)) {
      found.unshift(bytes.toString())
      assert.equal(text.slice(offset, offset + bytes.length + 1), `${bytes}\n`)
    }
    assert.deepEqual(found, lines)
  }
})

test('skips what is later without reading it all', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'lines')
  const lines = Array.from({ length: 50_000 }, (_, i) => `{"seq":${i},"more":"${'x'.repeat(i % 100)}"}`)
  await writeFile(path, `${lines.join('\n')}\n`)
  for (const wanted of [0, 1, 777, 25_000, 49_998, 49_999]) {
    let looks = 0
    const isLater = (head: string) => {
      looks += 1
      return Number(/\d+/.exec(head)?.[0]) > wanted
    }
    let skipped = 0
    for await (const { bytes } of linesBackwards(path, isLater)) {
      const { seq } = JSON.parse(bytes.toString())
      if (seq === wanted) break
      assert.ok(seq > wanted)
      skipped += 1
    }
    assert.ok(looks < 20 && skipped < 2_000, `${looks} looks, ${skipped} lines`)
  }
})
