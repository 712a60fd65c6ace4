// Many lists of captures as one, against a stable sort of all of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CaptureList } from '../../../src/fleet/capture-lists.ts'
import { newestOfAll } from '../../../src/fleet/newest-of-all.ts'
import { seededRandom } from '../../support/seeded-random.ts'

function listsOf(random: () => number, devices: number, captures: number): CaptureList[] {
  return Array.from({ length: devices }, (_, device) => {
    // Many captures begin together.
    const times = Array.from({ length: Math.floor(random() * captures) }, () =>
      BigInt(Math.floor(random() * 30)),
    )
    times.sort((a, b) => (a > b ? -1 : a < b ? 1 : 0))
    const entries = times.map((startNs, at) => ({ name: `c${at}`, startNs, endNs: undefined, json: '{}' }))
    return { device: `d${device}`, captures: entries }
  })
}

test('gives all captures, newest first, of those that began together in the order of lists', () => {
  const { next: random } = seededRandom()
  for (let round = 0; round < 200; round += 1) {
    const lists = listsOf(random, round % 17, 9)
    const expected = lists.flatMap(({ device, captures }) => captures.map((capture) => ({ device, capture })))
    expected.sort((a, b) => Number(b.capture.startNs - a.capture.startNs))
    assert.deepEqual([...newestOfAll(lists)], expected)
  }
})
