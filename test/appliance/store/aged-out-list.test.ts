// The list of captures that have aged out completely, when it exceeds its maximum length.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { addAgedOut, readAgedOut } from '../../../appliance/store/aged-out-list.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const CAPTURES_MAX = 2_000

test('beyond 2,000 captures the oldest two become one span, which keeps the start and the end of both', async () => {
  await using folder = await tempFolder()
  const paths = storePaths(folder.path)
  const captures = Array.from({ length: CAPTURES_MAX }, (_, number) => ({
    name: `c${number}`,
    startNs: String(number * 10),
    endNs: String(number * 10 + 10),
  }))
  await writeFile(paths.agedOut, JSON.stringify({ format: 1, captures }))
  await addAgedOut(paths, { name: 'newest', startNs: 90_000n, endNs: 90_010n })
  const list = await readAgedOut(paths)
  assert.equal(list.length, CAPTURES_MAX)
  assert.deepEqual(list[0], { name: '', startNs: 0n, endNs: 20n })
  assert.deepEqual(list[1], { name: 'c2', startNs: 20n, endNs: 30n })
  assert.equal(list.at(-1)?.name, 'newest')
})

test('the joined span ends with the later of the two, also when that is the first', async () => {
  await using folder = await tempFolder()
  const paths = storePaths(folder.path)
  const captures = Array.from({ length: CAPTURES_MAX }, (_, number) => ({
    name: `c${number}`,
    startNs: String(1_000 - number),
    endNs: String(9_000 - number),
  }))
  await writeFile(paths.agedOut, JSON.stringify({ format: 1, captures }).replaceAll('-', ''))
  await addAgedOut(paths, { name: 'newest', startNs: 1n, endNs: 2n })
  assert.deepEqual((await readAgedOut(paths))[0], { name: '', startNs: 999n, endNs: 9_000n })
})

test('a repeated name counts once, as the newest', async () => {
  await using folder = await tempFolder()
  const paths = storePaths(folder.path)
  await addAgedOut(paths, { name: 'a', startNs: 1n, endNs: 2n })
  await addAgedOut(paths, { name: 'b', startNs: 3n, endNs: 4n })
  await addAgedOut(paths, { name: 'a', startNs: 5n, endNs: 6n })
  assert.deepEqual(
    (await readAgedOut(paths)).map(({ name, startNs }) => [name, startNs]),
    [
      ['b', 3n],
      ['a', 5n],
    ],
  )
})
