import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Device } from '../../../../../src/gateway/device/device.ts'
import { DeviceClient } from '../../../../../src/gateway/device/device-client.ts'
import { probeClock } from '../../../../../src/gateway/fleet/health/device-probe.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'
import { FakeDevice } from '../../../../support/devices/fake-device.ts'

const LIMIT = { signal: new AbortController().signal, timeoutMs: 5_000 }
/** The simulated device reads its clock with a resolution of one millisecond. */
const TICK_NS = 1_000_000n

test('the bound includes the truth even if the process pauses after first reading a clock', async (t) => {
  await using fake = await FakeDevice.start('d0', Buffer.alloc(24))
  const { name, url, user, password } = fake
  const device = new Device({ name, url, user, password: new Secret(password) })
  const client = new DeviceClient(device, { connectTimeoutMs: 5_000, idleTimeoutMs: 5_000 })
  t.after(() => client.close())
  const now = Date.now
  t.mock.method(
    Date,
    'now',
    () => {
      const read = now()
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
      return read
    },
    { times: 1 },
  )
  const { offsetNs, errorNs } = await probeClock(client, LIMIT)
  const off = offsetNs < 0n ? -offsetNs : offsetNs
  assert.ok(off <= errorNs + TICK_NS, `${offsetNs} ${errorNs}`)
})
