import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holderOf, holderUnknown } from '../../../../../src/gateway/fleet/questions/find-capture.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'

const none = { device: 'd9', match: 'none' } as const

test('a full name comes before a base name', () => {
  assert.equal(
    holderOf('lab', [none, { device: 'd0', match: 'base' }, { device: 'd1', match: 'full' }]),
    'd1',
  )
  assert.equal(holderOf('lab', [none, { device: 'd0', match: 'base' }]), 'd0')
  assert.equal(holderOf('lab', [none]), undefined)
})

test('a name on several devices is ambiguous', () => {
  for (const match of ['full', 'base'] as const)
    assert.throws(
      () =>
        holderOf('lab', [
          { device: 'd0', match },
          { device: 'd1', match },
        ]),
      { code: 'ambiguous-capture', message: /d0, d1/ },
    )
})

test('unknown facts are reported for the devices that did not answer, and for no other', () => {
  const failureOf = (device: string) => ({
    device,
    error: new CapfleetError('device-timeout', `device ${device} did not answer within 3 s`),
  })
  const one = holderUnknown('lab', [failureOf('d2')])
  assert.deepEqual(
    [one.code, one.message, one.details.members?.devices],
    [
      'device-timeout',
      'no device that answered has a capture lab; it is unknown whether d2 has it: device d2 did not answer within 3 s',
      ['d2'],
    ],
  )
  const names = Array.from({ length: 20 }, (_, index) => `d${index}`)
  const many = holderUnknown('lab', names.map(failureOf))
  assert.match(many.message, /unknown whether d0, d1, d2, d3 and 16 more have it: /)
  assert.deepEqual(many.details.members?.devices, names)
})
