import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fleet, FleetMember } from '../../../../../src/gateway/fleet/fleet.ts'
import { CallLimits } from '../../../../../src/gateway/fleet/questions/call-limits.ts'
import { Metrics } from '../../../../../src/shared/base/metrics.ts'

const LIMITS = { callsMax: 3, callsPerUserMax: 2 }

/** A fleet with these devices, reduced to what the test needs. */
function fleetOf(names: ReadonlySet<string>): Pick<Fleet, 'find'> {
  return { find: (name) => (names.has(name) ? ({} as FleetMember) : undefined) }
}

test('a device has a limit of calls, and so has each user; a call that ends makes room', async () => {
  const metrics = new Metrics()
  const names = new Set(['d', 'e'])
  const calls = new CallLimits(LIMITS, metrics, fleetOf(names))
  const ended = Promise.withResolvers<void>()
  const hold = (device: string, user: string) => calls.run({ device, user }, () => ended.promise)
  const never = () => assert.fail('one call too many was made')
  const held = [hold('d', 'ann'), hold('d', 'ann')]
  const tooMany = { code: 'too-many-requests', details: { retryAfterS: 1 } }
  await assert.rejects(calls.run({ device: 'd', user: 'ann' }, never), tooMany)
  held.push(hold('e', 'ann'), hold('d', 'bob'))
  await assert.rejects(calls.run({ device: 'd', user: 'cat' }, never), tooMany)
  ended.resolve()
  await Promise.all(held)
  assert.equal(await calls.run({ device: 'd', user: 'ann' }, () => Promise.resolve(7)), 7)
  const text = await metrics.text()
  assert.match(text, /control_calls_total\{device="d",result="caller"\} 2\n/)
  assert.match(text, /control_calls_total\{device="d",result="ok"\} 4\n/)
  assert.match(text, /control_calls_total\{device="e",result="ok"\} 1\n/)
  names.delete('e')
  assert.doesNotMatch(await metrics.text(), /device="e"/, 'a device that is gone has no series')
})

test('a call that fails makes room too', async () => {
  const calls = new CallLimits({ callsMax: 1, callsPerUserMax: 1 }, new Metrics(), fleetOf(new Set()))
  const call = { device: 'd', user: 'ann' }
  for (let at = 0; at < 3; at++) {
    await assert.rejects(
      calls.run(call, () => Promise.reject(new Error('broken'))),
      /broken/,
    )
  }
  assert.equal(await calls.run(call, () => Promise.resolve('well')), 'well')
})
