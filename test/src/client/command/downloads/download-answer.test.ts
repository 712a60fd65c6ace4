import assert from 'node:assert/strict'
import { test } from 'node:test'
import { notesOf } from '../../../../../src/client/command/downloads/download-answer.ts'
import type { Received } from '../../../../../src/client/transport.ts'

test('devices that were left out are named with the times that are missing', () => {
  const missing =
    'lon1;from=1793610060000000000;to=1793610070000000000, sgp1;from=1793610060000000000;to=1793610061000000000'
  const answer = { headers: new Headers({ 'capfleet-missing': missing }) } as Received
  assert.deepEqual(notesOf(answer), [
    'devices left out: lon1 from 2026-11-02 09:01:00Z to 2026-11-02 09:01:10Z, sgp1 from 2026-11-02 09:01:00Z to 2026-11-02 09:01:01Z',
  ])
})

test('of many devices some are named, and what is not damaged is not mentioned', () => {
  const missing = Array.from(
    { length: 45 },
    (_, index) => `d${index};from=1793610060000000000;to=1793610070000000000`,
  )
  const headers = new Headers({ 'capfleet-missing': missing.join(', '), 'capfleet-damaged-segments': '0' })
  const [note = '', ...others] = notesOf({ headers } as Received)
  assert.match(note, /^devices left out: d0 from .*, d3 from \S+ \S+ to \S+ \S+ and 41 more$/)
  assert.deepEqual(others, [])
})
