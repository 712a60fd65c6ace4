import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeviceReport } from '../../../../src/console/base/devices.ts'
import { nextSort, readSort, SORT_KEYS, sorted } from '../../../../src/console/fleet/device-order.ts'
import { TEXTS } from '../../../../src/console/texts.ts'

const device = (name: string, oldestPacketNs: string | null, drops: number | null): DeviceReport =>
  ({ name, oldestPacketNs, capture: { drops } }) as DeviceReport
const DEVICES = [
  device('a', '1793610000000000001', 5),
  device('b', '0', null),
  device('c', '1793610000000000000', 70),
]

test('rows are sorted exactly beyond 2^53, and what is not reported is last in both directions', () => {
  const order = (text: string) => {
    const sort = readSort(text)
    assert.ok(sort)
    return sorted(DEVICES, sort)
      .map(({ name }) => name)
      .join('')
  }
  assert.deepEqual([order('oldest'), order('-oldest'), order('kept')], ['cab', 'acb', 'acb'])
  assert.deepEqual([order('drops'), order('-drops'), order('-device')], ['acb', 'cab', 'cba'])
})

test('the heading of a column turns the order, then gives the sites back', () => {
  assert.equal(nextSort(undefined, 'free'), 'free')
  assert.equal(nextSort(readSort('free'), 'free'), '-free')
  assert.equal(nextSort(readSort('-free'), 'free'), undefined)
  assert.equal(nextSort(readSort('-free'), 'rate'), 'rate')
  assert.deepEqual([readSort('down'), readSort('x'), readSort()], [undefined, undefined, undefined])
  assert.equal(SORT_KEYS.length, TEXTS.fleet.columns.length, 'each column has its key')
})
