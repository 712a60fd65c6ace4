import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Device } from '../../../../../src/gateway/device/device.ts'
import { deviceRefusal } from '../../../../../src/gateway/device/device-refusal.ts'
import { DeviceBreaker } from '../../../../../src/gateway/fleet/health/device-breaker.ts'
import { CapfleetError, ERROR_KINDS, type ErrorCode } from '../../../../../src/shared/base/error.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'

function breaker(failuresMax = 3) {
  const opened: string[] = []
  const seen = { suspicions: 0 }
  const device = new Device({ name: 'd0', url: 'http://127.0.0.1:9', token: new Secret('x') })
  const made = new DeviceBreaker({
    device,
    failuresMax,
    onOpen: ({ code }) => opened.push(code),
    onSuspicion: () => {
      seen.suspicions += 1
    },
  })
  return { breaker: made, device, opened, seen }
}

const failure = (code: ErrorCode) => new CapfleetError(code, `device d0 failed by ${code}`)
const fail = (made: DeviceBreaker, code: ErrorCode) =>
  assert.rejects(
    made.run(() => Promise.reject(failure(code))),
    { code },
  )

test('opens after several failed probes in a row, and calls then fail at once, with the last error and since when', async () => {
  const { breaker: made, opened } = breaker()
  const startedMs = Date.now()
  for (const code of ['device-unreachable', 'device-timeout', 'device-protocol'] as const) {
    assert.equal(made.state, 'closed')
    made.probeFailed(failure(code))
  }
  assert.deepEqual([made.state, opened], ['open', ['device-protocol']])
  let calls = 0
  await assert.rejects(
    made.run(async () => {
      calls += 1
    }),
    (error: CapfleetError) => {
      assert.deepEqual([error.code, error.details.members?.devices], ['device-unreachable', ['d0']])
      assert.match(
        error.message,
        /^device d0 has been failing since 20\S+ and is not used until it answers a probe: it failed by device-protocol$/,
      )
      assert.ok(Date.parse(String(error.details.members?.since)) >= startedMs)
      return true
    },
  )
  assert.equal(calls, 0)
})

test('no call opens it, however it fails; one that the device may be to blame for asks for a probe', async () => {
  const { breaker: made, opened, seen } = breaker(1)
  const codes = Object.keys(ERROR_KINDS) as ErrorCode[]
  for (const code of codes) {
    const before = seen.suspicions
    await fail(made, code)
    assert.equal(seen.suspicions - before, ERROR_KINDS[code].blame === 'device' ? 1 : 0, code)
  }
  made.suspect(new Error('the client has gone'))
  const blamed = codes.filter((code) => ERROR_KINDS[code].blame === 'device')
  assert.deepEqual([made.state, opened, seen.suspicions], ['closed', [], blamed.length])
})

test('a success in between restarts the count', async () => {
  const { breaker: made } = breaker()
  for (let round = 0; round < 5; round += 1) {
    made.probeFailed(failure('device-timeout'))
    made.probeFailed(failure('device-timeout'))
    assert.equal(await made.run(async () => round), round)
  }
  assert.equal(made.state, 'closed')
})

test('a probe that is refused does not count: the device is at work', () => {
  const { breaker: made } = breaker(1)
  for (const code of ['bad-bpf', 'download-slots-exhausted', 'device-rejected', 'draining'] as const)
    made.probeFailed(failure(code))
  made.probeFailed(deviceRefusal('d0', { status: 404, body: '<html>' }).error)
  made.probeFailed(new Error('the client has gone'))
  assert.equal(made.state, 'closed')
  made.probeFailed(deviceRefusal('d0', { status: 500, body: '<html>' }).error)
  assert.equal(made.state, 'open')
})

test('a successful probe admits calls; the first failed probe after it opens the breaker again', async () => {
  const { breaker: made, opened } = breaker(2)
  const running = Promise.withResolvers<void>()
  const begunBefore = made.run(() => running.promise)
  made.probeFailed(failure('device-timeout'))
  made.probeFailed(failure('device-timeout'))
  running.resolve()
  await begunBefore
  assert.equal(made.state, 'open', 'a call that began before the failures proves nothing')
  made.probed()
  assert.equal(made.state, 'trial')
  made.probeFailed(failure('device-timeout'))
  assert.deepEqual([made.state, opened.length], ['open', 2])
  made.probed()
  await made.run(async () => undefined)
  assert.equal(made.state, 'closed')
  made.probeFailed(failure('device-timeout'))
  assert.equal(made.state, 'closed', 'one failure is not enough any more')
})

test('without calls the second probe in a row ends the trial', () => {
  const { breaker: made } = breaker(1)
  made.probeFailed(failure('device-unreachable'))
  made.probed()
  made.probed()
  assert.equal(made.state, 'closed')
})

test('is open while the device has vanished, and afterwards as it was before', async () => {
  const { breaker: made, device, opened } = breaker()
  device.vanishedAt = new Date('2026-10-01T12:00:00Z')
  assert.equal(made.state, 'open')
  const work = () => assert.fail('the device was asked')
  await assert.rejects(made.run(work), {
    code: 'device-unreachable',
    message: 'device d0 is not used: its directory has not listed it since 2026-10-01T12:00:00.000Z',
  })
  device.vanishedAt = undefined
  assert.deepEqual([made.state, opened], ['closed', []])
  assert.equal(await made.run(async () => 'asked'), 'asked')
})
