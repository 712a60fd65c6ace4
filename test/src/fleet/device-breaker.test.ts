import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError, type ErrorCode } from '../../../src/base/error.ts'
import { DeviceBreaker } from '../../../src/fleet/device-breaker.ts'
import { deviceRefusal } from '../../../src/fleet/device-failure.ts'

function breaker(failuresMax = 3) {
  const opened: string[] = []
  const made = new DeviceBreaker({ device: 'd0', failuresMax, onOpen: ({ code }) => opened.push(code) })
  return { breaker: made, opened }
}

const failure = (code: ErrorCode) => new CapfleetError(code, `${code} of d0`)
const fail = (made: DeviceBreaker, code: ErrorCode) =>
  assert.rejects(
    made.run(() => Promise.reject(failure(code))),
    { code },
  )

test('opens after so many failures in a row, and calls then fail at once, with the last error and since when', async () => {
  const { breaker: made, opened } = breaker()
  const startedMs = Date.now()
  for (const code of ['device-unreachable', 'device-timeout', 'device-protocol'] as const) {
    assert.equal(made.state, 'closed')
    await fail(made, code)
  }
  assert.deepEqual([made.state, opened], ['open', ['device-protocol']])
  let calls = 0
  await assert.rejects(
    made.run(async () => {
      calls += 1
    }),
    (error: CapfleetError) => {
      assert.deepEqual([error.code, error.details.members?.devices], ['device-unreachable', ['d0']])
      assert.match(error.message, /^device d0 has failed since 20.*last: device-protocol of d0$/)
      assert.ok(Date.parse(String(error.details.members?.since)) >= startedMs)
      return true
    },
  )
  assert.equal(calls, 0)
})

test('a success in between starts the count anew', async () => {
  const { breaker: made } = breaker()
  for (let round = 0; round < 5; round += 1) {
    await fail(made, 'device-timeout')
    await fail(made, 'device-timeout')
    assert.equal(await made.run(async () => round), round)
  }
  assert.equal(made.state, 'closed')
})

test('what the caller or the load is to blame for does not count', async () => {
  const { breaker: made } = breaker(1)
  for (const code of ['bad-bpf', 'download-slots-exhausted', 'device-rejected', 'draining'] as const)
    await fail(made, code)
  made.failed(deviceRefusal('d0', 404, '<html>'))
  made.failed(new Error('the client has gone'))
  assert.equal(made.state, 'closed')
  made.failed(deviceRefusal('d0', 500, '<html>'))
  assert.equal(made.state, 'open')
})

test('a probe that goes well lets calls through; the first failure after it closes the way again', async () => {
  const { breaker: made, opened } = breaker(2)
  await fail(made, 'device-timeout')
  await fail(made, 'device-timeout')
  made.succeeded()
  assert.equal(made.state, 'open', 'a call that began before the failures proves nothing')
  made.probed()
  assert.equal(made.state, 'trial')
  await fail(made, 'device-timeout')
  assert.deepEqual([made.state, opened.length], ['open', 2])
  made.probed()
  await made.run(async () => undefined)
  assert.equal(made.state, 'closed')
  await fail(made, 'device-timeout')
  assert.equal(made.state, 'closed', 'one failure is not enough any more')
})

test('without calls the second probe in a row ends the trial', () => {
  const { breaker: made } = breaker(1)
  made.failed(failure('device-unreachable'))
  made.probed()
  made.probed()
  assert.equal(made.state, 'closed')
})
