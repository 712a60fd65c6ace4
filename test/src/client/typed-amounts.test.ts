import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesIn, nanosecondsIn } from '../../../src/client/typed-amounts.ts'

test('sizes are decimal or binary, in upper or lower case', () => {
  assert.deepEqual(
    ['4096', '1kB', '1KiB', '500mib', '2G', '0'].map(bytesIn),
    [4_096, 1_000, 1_024, 524_288_000, 2_000_000_000, 0],
  )
  for (const text of ['', 'MiB', '1.5GB', '-1', '1 GB', '99999999999TiB'])
    assert.equal(bytesIn(text), undefined, text)
})

test('lengths of time need a unit', () => {
  assert.deepEqual(['1ns', '2us', '3ms', '4s', '5m', '6h'].map(nanosecondsIn), [
    1n,
    2_000n,
    3_000_000n,
    4_000_000_000n,
    300_000_000_000n,
    21_600_000_000_000n,
  ])
  for (const text of ['', '5', 's', '1.5s', '-1s', '1d', '1 s'])
    assert.equal(nanosecondsIn(text), undefined, text)
})
