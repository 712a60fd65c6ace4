import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  asJson,
  type DeviceReply,
  formatReplies,
  statusOf,
} from '../../../../../src/gateway/fleet/questions/fan-out.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'

const says = (device: string, text: string): DeviceReply => ({ device, json: asJson(device, text) })
const well = (device: string) => says(device, '{"Status":true}')
const ill = (device: string, code: 'capture-running' | 'device-timeout'): DeviceReply => ({
  device,
  error: new CapfleetError(code, `${code} of its own`, { members: { devices: [device] } }),
})

test("keeps every digit of a device's answer, and text that is no JSON as text", () => {
  const text = formatReplies([
    says('a', '{"TimeFPGA":1793610000000000001,\n"x":[1.50]}'),
    says('b', '1793610000000000001\n'),
    says('c', '{"cut":'),
    says('d', 'uptime,  "5"\n'),
    ill('e', 'capture-running'),
  ])
  assert.ok(text.includes('"Body":{"TimeFPGA":1793610000000000001,\n"x":[1.50]}'), text)
  const { Devices } = JSON.parse(text) as { Devices: Record<string, unknown>[] }
  assert.deepEqual(
    Devices.slice(1).map(({ Body }) => Body),
    ['1793610000000000001\n', '{"cut":', 'uptime,  "5"\n', undefined],
  )
  assert.deepEqual(Devices[4], {
    Device: 'e',
    Status: 409,
    error: { code: 'capture-running', detail: 'capture-running of its own' },
  })
})

test('is 200 when all went well, 207 when the devices differ, and the failure when all failed alike', () => {
  assert.equal(statusOf([well('a'), well('b')]), 200)
  assert.equal(statusOf([well('a'), ill('b', 'capture-running')]), 207)
  assert.equal(statusOf([ill('a', 'device-timeout'), ill('b', 'capture-running')]), 207)
  assert.throws(
    () => statusOf([ill('a', 'capture-running'), ill('b', 'capture-running')]),
    (error: CapfleetError) => {
      assert.deepEqual([error.code, error.details.members?.devices], ['capture-running', ['a', 'b']])
      assert.equal(error.message, 'a, b: capture-running of its own')
      return true
    },
  )
})

test('an answer that is nested too deep to be written again is a fault of its device', () => {
  for (const text of ['['.repeat(20_000), `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`])
    assert.throws(() => asJson('nyc1', text), { code: 'device-protocol', message: /device nyc1/ })
  assert.equal(asJson('nyc1', `"${'['.repeat(20_000)}"`), JSON.stringify(`"${'['.repeat(20_000)}"`))
})
