import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../../../../src/demo/traffic/random.ts'

test('the same seed and label give the same numbers, others do not', () => {
  const numbers = (seed: number, label?: string) => {
    const random = new Random(seed, label)
    return Array.from({ length: 5 }, () => random.uint32())
  }
  assert.deepEqual(numbers(1), numbers(1))
  assert.notDeepEqual(numbers(1), numbers(2))
  assert.notDeepEqual(numbers(1, 'a'), numbers(1, 'b'))
})

test('numbers are even and stay in their range', () => {
  const random = new Random(5)
  const counts = new Array<number>(10).fill(0)
  for (let i = 0; i < 100_000; i++) {
    const number = random.between(3, 12)
    counts[number - 3] = (counts[number - 3] ?? Number.NaN) + 1
  }
  for (const count of counts) assert.ok(count > 9_500 && count < 10_500, `${counts}`)
})

test('waiting times have their mean and are bounded', () => {
  const random = new Random(6)
  const times = Array.from({ length: 100_000 }, () => random.exponential(20))
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length
  assert.ok(mean > 19 && mean < 21)
  assert.ok(Math.max(...times) <= 200)
})
