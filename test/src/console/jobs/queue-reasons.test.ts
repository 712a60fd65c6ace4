import assert from 'node:assert/strict'
import { test } from 'node:test'
import { busyDevices } from '../../../../src/console/jobs/queue-reasons.ts'

const DEVICES = [
  { name: 'a', slotsTotal: 4, slotsLimit: null },
  { name: 'b', slotsTotal: 4, slotsLimit: 2 },
]
const streaming = (...devices: string[]) => ({ class: 'interactive', state: 'streaming', devices }) as const
const waiting = (...devices: string[]) => ({ ...streaming(...devices), state: 'waiting' }) as const

test('a request waits for the devices whose streams are in use, and waiting requests use none', () => {
  const requests = [streaming('a', 'b'), streaming('b'), waiting('a', 'b')]
  const busy = { device: 'b', used: 2, usable: 2, isKept: false }
  assert.deepEqual(busyDevices(waiting('a', 'b'), requests, DEVICES), [busy])
  assert.deepEqual(busyDevices(waiting('a', 'b'), requests.slice(1), DEVICES), [])
  assert.deepEqual(busyDevices(waiting('unknown'), requests, DEVICES), [])
})

test('an export waits while exports have three of four streams, and while all are in use', () => {
  const bulk = { ...streaming('a'), class: 'bulk' } as const
  const suspect = { ...bulk, state: 'suspect' } as const
  const next = { ...waiting('a'), class: 'bulk' } as const
  const kept = { device: 'a', used: 3, usable: 3, isKept: true }
  assert.deepEqual(busyDevices(next, [bulk, bulk, suspect], DEVICES), [kept])
  assert.deepEqual(busyDevices(waiting('a'), [bulk, bulk, suspect], DEVICES), [])
  assert.deepEqual(busyDevices(next, [bulk, streaming('a'), streaming('a')], DEVICES), [])
  const full = [bulk, streaming('a'), streaming('a'), streaming('a')]
  assert.deepEqual(busyDevices(next, full, DEVICES), [{ device: 'a', used: 4, usable: 4, isKept: false }])
})
