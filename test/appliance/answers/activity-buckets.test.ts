import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ActivityBuckets } from '../../../appliance/answers/activity-buckets.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const MS = 1_000_000n
const one = { packets: 1, bytes: 100 }

test('a range is cut into equal parts, of which the last one ends with it', () => {
  for (const [lengthNs, most, bucketNs, count] of [
    [1_000n, 10, 100n, 10],
    [1_001n, 10, 101n, 10],
    [7n, 300, 1n, 7],
    [1n, 1, 1n, 1],
    [10n, 4, 3n, 4],
    [9n, 4, 3n, 3],
  ] as const) {
    const buckets = new ActivityBuckets({ beginNs: 5n, endNs: 5n + lengthNs }, most)
    assert.deepEqual([buckets.bucketNs, buckets.packets.length], [bucketNs, count])
  }
})

test('a span inside of one bucket is exact, and one with an edge inside is spread over its time', () => {
  const buckets = new ActivityBuckets({ beginNs: 0n, endNs: 100n }, 10)
  buckets.add({ beginNs: 10n, endNs: 20n }, { packets: 3, bytes: 30 })
  buckets.add({ beginNs: 15n, endNs: 25n }, { packets: 0, bytes: 0 })
  assert.deepEqual([buckets.packets[1], buckets.isExact], [3, true])
  buckets.add({ beginNs: 20n, endNs: 40n }, { packets: 10, bytes: 1_000 })
  assert.deepEqual(
    [buckets.packets.slice(2, 4), buckets.bytes.slice(2, 4)],
    [
      [5, 5],
      [500, 500],
    ],
  )
  assert.equal(buckets.isExact, false)
})

test('of a span beyond the range the part inside counts', () => {
  const buckets = new ActivityBuckets({ beginNs: 50n, endNs: 150n }, 2)
  buckets.add({ beginNs: 0n, endNs: 100n }, { packets: 10, bytes: 10 })
  buckets.add({ beginNs: 100n, endNs: 200n }, { packets: 10, bytes: 10 })
  buckets.add({ beginNs: 0n, endNs: 50n }, one)
  buckets.add({ beginNs: 150n, endNs: 151n }, one)
  assert.deepEqual(buckets.packets, [5, 5])
})

test('whatever is spread keeps its sum', () => {
  const random = seededRandom()
  const range = {
    beginNs: 1_790_000_000_000_000_000n,
    endNs: 1_790_000_000_000_000_000n + 86_400n * 1_000n * MS,
  }
  const buckets = new ActivityBuckets(range, 777)
  let [packets, bytes] = [0, 0]
  for (let count = 0; count < 1_000; count++) {
    const beginNs = range.beginNs + BigInt(random.integer(0, 86_000_000)) * MS
    const amount = { packets: random.integer(1, 50), bytes: random.integer(60, 50_000) }
    buckets.add({ beginNs, endNs: beginNs + BigInt(random.integer(1, 400_000)) * MS }, amount)
    packets += amount.packets
    bytes += amount.bytes
  }
  const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0)
  assert.deepEqual([sum(buckets.packets), sum(buckets.bytes)], [packets, bytes])
  assert.ok(buckets.packets.every((count) => Number.isInteger(count) && count >= 0))
})

test('packets are counted per whole millisecond, and milliseconds with an edge inside separately', () => {
  const whole = new ActivityBuckets({ beginNs: 0n, endNs: 4n * MS }, 2)
  assert.deepEqual(whole.countedAtNs, [0n, 2n * MS, 4n * MS])
  const between = new ActivityBuckets({ beginNs: 1n, endNs: 4n * MS + 1n }, 2)
  assert.deepEqual(between.countedAtNs, [0n, MS, 2n * MS, 3n * MS, 4n * MS, 5n * MS])
  const short = new ActivityBuckets({ beginNs: 5n, endNs: 500n }, 100)
  assert.deepEqual(short.countedAtNs, [0n, MS])
})

test('takes a part that lies in one bucket as a whole', () => {
  const buckets = new ActivityBuckets({ beginNs: 100n, endNs: 200n }, 10)
  for (const [beginNs, endNs, isWithin] of [
    [100n, 110n, true],
    [109n, 110n, true],
    [109n, 111n, false],
    [99n, 101n, false],
    [195n, 200n, true],
    [195n, 201n, false],
  ] as const)
    assert.equal(buckets.addToOne({ beginNs, endNs }, one), isWithin, `${beginNs}-${endNs}`)
  assert.deepEqual(buckets.packets, [2, 0, 0, 0, 0, 0, 0, 0, 0, 1])
})
