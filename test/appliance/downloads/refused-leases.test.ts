import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REFUSED_LEASES_MAX, RefusedLeases } from '../../../appliance/downloads/refused-leases.ts'

test('the last names are kept, the oldest is dropped', () => {
  const refused = new RefusedLeases()
  for (let number = 0; number < REFUSED_LEASES_MAX; number++) refused.add(`lease-${number}`)
  assert.ok(refused.has('lease-0'))
  refused.add('one more')
  const kept = Array.from({ length: REFUSED_LEASES_MAX }, (_, number) => refused.has(`lease-${number}`))
  assert.deepEqual([kept.indexOf(true), kept.lastIndexOf(false)], [1, 0])
  assert.ok(refused.has('one more'))
})

test('a name that is refused again is kept as long as a new one', () => {
  const refused = new RefusedLeases()
  refused.add('again')
  for (let number = 1; number < REFUSED_LEASES_MAX; number++) refused.add(`lease-${number}`)
  refused.add('again')
  refused.add('one more')
  assert.deepEqual(
    ['again', 'lease-1', 'lease-2', 'one more'].map((name) => refused.has(name)),
    [true, false, true, true],
  )
})
