import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Metrics } from '../../../src/base/metrics.ts'
import { CallLimits } from '../../../src/fleet/call-limits.ts'

const LIMITS = { callsMax: 3, callsPerUserMax: 2 }

test('a device has a limit of calls, and so has each user; a call that ends makes room', async () => {
  const metrics = new Metrics()
  const calls = new CallLimits(LIMITS, metrics)
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
  assert.match(text, /control_calls_total\{device="d",result="too-many-requests"\} 2\n/)
  assert.match(text, /control_calls_total\{device="d",result="ok"\} 4\n/)
})

test('a call that fails makes room too', async () => {
  const calls = new CallLimits({ callsMax: 1, callsPerUserMax: 1 }, new Metrics())
  const call = { device: 'd', user: 'ann' }
  for (let at = 0; at < 3; at++) {
    await assert.rejects(
      calls.run(call, () => Promise.reject(new Error('broken'))),
      /broken/,
    )
  }
  assert.equal(await calls.run(call, () => Promise.resolve('well')), 'well')
})
