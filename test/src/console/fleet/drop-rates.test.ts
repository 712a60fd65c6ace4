import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeviceReport } from '../../../../src/console/base/devices.ts'
import { countedDrops } from '../../../../src/console/fleet/drop-rates.ts'

function report(atS: number, drops: number | null, name = 'c_1'): DeviceReport {
  const probedAt = new Date(1_790_000_000_000 + atS * 1_000).toISOString()
  return { name: 'a', probedAt, capture: { state: 'running', name, gbps: 1, mpps: 1, drops } } as DeviceReport
}

test('the rate is that between two probes, and stays until the next', () => {
  const perS = (...reports: DeviceReport[]) =>
    reports.reduce((before, one) => countedDrops(before, [one]), countedDrops(new Map(), [])).get('a')?.perS
  assert.equal(perS(report(0, 10)), undefined)
  assert.equal(perS(report(0, 10), report(2, 40)), 15)
  assert.equal(perS(report(0, 10), report(2, 40), report(2, 40)), 15)
  assert.equal(perS(report(0, 10), report(2, 40), report(4, 40)), 0)
  assert.equal(perS(report(0, 10), report(2, 40), report(4, 50, 'c_2')), undefined, 'another capture')
  assert.equal(perS(report(0, 10), report(2, 3)), undefined, 'a count that began again')
  assert.equal(perS(report(0, 10), report(2, null)), undefined)
})
