// When a device has flushed all packets of a time that has just ended.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { Device } from '../../../../src/gateway/device/device.ts'
import type { Fleet } from '../../../../src/gateway/fleet/fleet.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { TIME_LIMIT_NS } from '../../../../src/shared/query/time/query-time.ts'
import { flushWaitMs } from '../../../../src/worker/run/flushed-device.ts'
import { FakeDevice } from '../../../support/devices/fake-device.ts'
import { tempFleet } from '../../../support/devices/temp-fleet.ts'

const NOW_MS = Date.parse('2026-11-23T10:00:00Z')
const RECENT_MS = 600_000
const STATUS = '/sysmaster/capture_status'

describe('what is asked of a device whose packets are wanted', () => {
  let fake: FakeDevice
  let fleet: Fleet

  before(async () => {
    fake = await FakeDevice.start('d0', Buffer.alloc(24))
    fleet = tempFleet([fake])
    await fleet.get('d0').health.probedOnce
  })
  after(async () => {
    await fleet[Symbol.asyncDispose]()
    await fake[Symbol.asyncDispose]()
  })
  beforeEach(() => {
    fake.behaviour = {}
    fake.answers.clear()
    fake.requests.length = 0
  })

  /** The offset of its clock is not among these. */
  const deviceNowMs = (): number => NOW_MS - Number((fleet.clockOf('d0')?.offsetNs ?? 0n) / 1_000_000n)

  function wait(endMs: number, { member = fleet.get('d0'), timeoutMs = 60_000 } = {}): Promise<number> {
    return flushWaitMs(member, {
      endNs: BigInt(endMs) * 1_000_000n,
      nowMs: deviceNowMs(),
      hostAheadMs: 0,
      recentMs: RECENT_MS,
      timeoutMs,
      signal: new AbortController().signal,
    })
  }

  function capture(state: string, flushedMs: number): void {
    const CaptureEnable = String(state === 'running' || state === 'rolling' || state === 'starting')
    const FlushedTS = String(BigInt(flushedMs) * 1_000_000n)
    fake.answers.set(STATUS, { Status: true, CaptureEnable, State: state, FlushedTS })
  }

  test('nothing where the time ended long ago', async () => {
    assert.equal(await wait(NOW_MS - RECENT_MS - 1_000), 0)
    assert.deepEqual(fake.requests, [])
  })

  test('nothing where all packets that there are are wanted', async () => {
    assert.equal(await wait(Number(TIME_LIMIT_NS / 1_000_000n)), 0)
    assert.deepEqual(fake.requests, [])
  })

  test('nothing before the time is over, by the clock of the device', async () => {
    capture('running', NOW_MS)
    const ms = await wait(NOW_MS + 20_000)
    assert.ok(ms >= 20_000 && ms <= 20_010, `${ms} ms`)
    assert.equal(await wait(NOW_MS + 86_400_000), 600_000, 'a clock may be set meanwhile')
    assert.deepEqual(fake.requests, [])
  })

  test('whether it has written what it captured', async () => {
    capture('running', NOW_MS - 2_000)
    assert.equal(await wait(NOW_MS - 2_000), 0)
    assert.ok((await wait(NOW_MS - 1_000)) > 0)
    capture('running', NOW_MS - 1_000)
    assert.equal(await wait(NOW_MS - 1_000), 0)
  })

  test('nothing more where no capture runs, but one that is being stopped has packets still', async () => {
    capture('idle', 0)
    assert.equal(await wait(NOW_MS - 100), 0)
    capture('stopping', NOW_MS - 1_000)
    assert.ok((await wait(NOW_MS - 100)) > 0)
    capture('rolling', NOW_MS - 1_000)
    assert.ok((await wait(NOW_MS - 100)) > 0)
  })

  test('a device that does not write what it captured is one that cannot be read', async () => {
    capture('running', NOW_MS - 40_000)
    await assert.rejects(wait(NOW_MS - 31_000), (error: { code: string; details: { members: unknown } }) => {
      assert.equal(error.code, 'device-timeout')
      assert.deepEqual(error.details.members, { devices: ['d0'] })
      return true
    })
  })

  for (const [what, answer] of [
    ['that does not know the path', undefined],
    ['that tells nothing of it', { Status: true, CaptureEnable: 'true' }],
    ['that tells it in other words', { CaptureEnable: 'true', FlushedTS: 12.5 }],
    ['that tells nothing at all', null],
  ] as const)
    test(`a device ${what} gets 5 s to write`, async () => {
      if (answer !== undefined) fake.answers.set(STATUS, answer)
      const ms = await wait(NOW_MS - 1_000)
      assert.ok(ms >= 3_990 && ms <= 4_010, `${ms} ms`)
      assert.equal(await wait(NOW_MS - 5_010), 0)
    })

  test('a device that does not answer is left to the download, which will meet it too', async () => {
    fake.behaviour = { silentBelow: STATUS }
    assert.equal(await wait(NOW_MS - 6_000, { timeoutMs: 300 }), 0)
  })

  test('whose clock is ahead of ours has passed the end before us', async () => {
    await using ahead = await FakeDevice.start('ahead', Buffer.alloc(24))
    ahead.clockAheadNs = 60_000_000_000n
    fleet.replace([fake, ahead].map(deviceOf))
    const member = fleet.get('ahead')
    await member.health.probedOnce
    assert.equal(await wait(NOW_MS + 30_000, { member }), 0)
  })
})

function deviceOf({ name, url, user, password }: FakeDevice): Device {
  return new Device({ name, url, user, password: new Secret(password) })
}
