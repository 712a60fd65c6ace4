// The newest events of a device, and whether older ones are missing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeptEvents } from '../../../../../src/gateway/fleet/events/kept-events.ts'

const seqs = (kept: KeptEvents, seq: number) => kept.after(seq).map((event) => event.seq)

test('the newest 64 stay, and it is known that others were there', () => {
  const kept = new KeptEvents()
  for (let seq = 1; seq <= 70; seq++) kept.add({ seq, text: 'x' })
  assert.equal(seqs(kept, 0).length, 64)
  assert.deepEqual(seqs(kept, 68), [69, 70])
  assert.equal(kept.hasLostAfter(5), true)
  assert.equal(kept.hasLostAfter(6), false)
})

test('long events push out more, but never themselves', () => {
  const kept = new KeptEvents()
  for (let seq = 1; seq <= 10; seq++) kept.add({ seq, text: 'x'.repeat(30_000) })
  assert.deepEqual(seqs(kept, 0), [9, 10])
  kept.add({ seq: 11, text: 'x'.repeat(200_000) })
  assert.deepEqual(seqs(kept, 0), [11])
})

test('events that were never received are missing from then on', () => {
  const kept = new KeptEvents()
  kept.add({ seq: 1, text: 'x' })
  kept.loseAll(5)
  assert.deepEqual(seqs(kept, 0), [])
  assert.equal(kept.hasLostAfter(4), true)
  assert.equal(kept.hasLostAfter(5), false)
})
