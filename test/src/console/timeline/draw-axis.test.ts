import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placedDates } from '../../../../src/console/timeline/draw-axis.ts'

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
