import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placedDates, tickCount } from '../../../../src/console/timeline/draw-axis.ts'
import { timeAxis } from '../../../../src/console/timeline/time-axis.ts'

const EDGE = { ns: 0n, text: 'Saturday', zone: 'UTC+02:00' }
const NEXT = { ns: 200n, text: 'Sunday', zone: 'UTC+02:00' }
const LAST = { ns: 400n, text: 'Monday', zone: 'UTC+01:00' }
const ROOM = { xOf: ({ ns }: { ns: bigint }) => Number(ns), widthOf: (text: string) => text.length * 8 }

test('each date says its zone when the one before it has another one', () => {
  const texts = placedDates([EDGE, NEXT, LAST], { ...ROOM, widthPx: 600 }).map(({ text }) => text)
  assert.deepEqual(texts, ['Saturday UTC+02:00', 'Sunday', 'Monday UTC+01:00'])
})

test('a date that has no room is left out, and the next one says the zone', () => {
  const near = { ...EDGE, ns: 190n }
  const texts = placedDates([near, NEXT, LAST], { ...ROOM, widthPx: 420 }).map(({ text }) => text)
  assert.deepEqual(texts, ['Sunday UTC+02:00'])
})

test('lanes on a phone have marks, whatever time is shown', () => {
  const PHONE_PX = 230
  for (let seconds = 1n; seconds < 100_000n; seconds += seconds / 3n + 1n) {
    const view = { fromNs: 0n, toNs: seconds * 1_000_000_000n }
    const { ticks } = timeAxis(view, 'UTC', tickCount(PHONE_PX))
    // At the right edge there is no space for a label.
    assert.ok(ticks.filter(({ ns }) => ns < view.toNs).length >= 1, `${seconds} s`)
  }
})
