import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundsOf, boundsSchema, joinBounds, sameBounds } from '../../../../src/shared/auth/bounds.ts'
import { UNBOUNDED } from '../../../../src/shared/base/caller.ts'

test('what is written becomes bounds of its holder', () => {
  const written = boundsSchema.parse({
    devices: 'lon*',
    filter: 'udp',
    spanMaxS: 60,
    bytesPerDay: 5,
    streamsMax: 2,
  })
  assert.deepEqual(boundsOf('ann', written), {
    devices: ['lon*'],
    filters: ['udp'],
    spanMaxS: 60,
    quotas: [{ holder: 'ann', bytesPerDay: 5, streamsMax: 2 }],
  })
  assert.ok(sameBounds(boundsOf('ann', {}), UNBOUNDED))
})

for (const [name, written] of [
  ['no devices', { devices: '' }],
  ['a filter that leaves its parentheses', { filter: 'udp) or (tcp' }],
  ['a blank filter', { filter: ' \t' }],
  ['no time', { spanMaxS: 0 }],
  ['part of a byte', { bytesPerDay: 0.5 }],
  ['more than a number holds', { bytesPerDay: 2 ** 53 }],
  ['what nobody knows', { packets: 5 }],
] as const) {
  test(`bounds cannot be ${name}`, () => assert.equal(boundsSchema.safeParse(written).success, false))
}

test('joined bounds are within both, whatever is joined to what', () => {
  const user = boundsOf('ann', { devices: 'lon*', filter: 'udp', spanMaxS: 60, streamsMax: 4 })
  const token = boundsOf('t-1', { devices: 'lon1', spanMaxS: 600, bytesPerDay: 9 })
  const joined = joinBounds(user, token)
  assert.deepEqual(joined, {
    devices: ['lon*', 'lon1'],
    filters: ['udp'],
    spanMaxS: 60,
    quotas: [
      { holder: 'ann', bytesPerDay: undefined, streamsMax: 4 },
      { holder: 't-1', bytesPerDay: 9, streamsMax: undefined },
    ],
  })
  assert.deepEqual(joinBounds(joined, user), joined)
  assert.deepEqual(joinBounds(joined, token), joined)
  assert.equal(sameBounds(joined, user), false)
})
