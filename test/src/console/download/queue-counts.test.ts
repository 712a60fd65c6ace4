import assert from 'node:assert/strict'
import { test } from 'node:test'
import { queueCounts, requestsOf } from '../../../../src/console/download/queue-counts.ts'

const PLACE = {
  id: '1',
  request: '1',
  class: 'interactive',
  user: 'user',
  replica: 'r',
  enqueuedAt: '2026-11-24T12:00:00.000Z',
  grantedAt: null,
  position: null,
  etaMs: null,
  export: null,
  capture: null,
  fromNs: null,
  toNs: null,
  bytes: null,
} as const
const REQUESTS = [
  { ...PLACE, state: 'waiting', devices: ['a', 'b'] },
  { ...PLACE, state: 'streaming', devices: ['b'] },
  { ...PLACE, state: 'suspect', devices: ['c'] },
] as const
const requests = REQUESTS.map((request) => ({ ...request, devices: [...request.devices] }))

test('a request waiting for other devices is not ahead of a download, and one that may have gone is not streaming', () => {
  assert.deepEqual(queueCounts(requestsOf(requests, ['a'])), { waiting: 1, streaming: 0, suspect: 0 })
  assert.deepEqual(queueCounts(requestsOf(requests, ['c'])), { waiting: 0, streaming: 0, suspect: 1 })
  assert.deepEqual(queueCounts(requestsOf(requests, undefined)), { waiting: 1, streaming: 1, suspect: 1 })
})
