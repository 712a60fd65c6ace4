import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventPace } from '../../../../../src/gateway/fleet/events/event-pace.ts'

test('500 events of a device are read at once, further ones at 50 in a second, however long it was silent', () => {
  let nowMs = 0
  const pace = new EventPace(() => nowMs)
  assert.equal(pace.pauseMs(500), 0)
  assert.equal(pace.pauseMs(1), 20)
  assert.equal(pace.pauseMs(49), 1_000)
  nowMs += 1_000
  assert.equal(pace.pauseMs(5), 100, 'what was owed is paid')
  nowMs += 86_400_000
  assert.equal(pace.pauseMs(500), 0)
  assert.equal(pace.pauseMs(50), 1_000, 'a day of silence does not earn more than 500')
})
