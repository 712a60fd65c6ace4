import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isEnclosed, joinFilters } from '../../../../../src/shared/query/filter/joined-filter.ts'

test('a filter is enclosed when nothing of it can end the parentheses around it', () => {
  for (const filter of ['udp', '(udp) or (tcp)', '((a) and b)', '']) assert.ok(isEnclosed(filter), filter)
  for (const filter of [')', '(', 'udp) or (tcp', ') or (', '(()'])
    assert.equal(isEnclosed(filter), false, filter)
})

test('forced filters come first, each in its own parentheses', () => {
  assert.equal(joinFilters([], undefined), undefined)
  assert.equal(joinFilters([], 'tcp or udp'), 'tcp or udp')
  assert.equal(joinFilters(['udp'], undefined), 'udp')
  assert.equal(joinFilters(['udp', 'port 53'], 'vlan or ip'), '(udp) and (port 53) and (vlan or ip)')
})

test('no forced filter changes what another one means', () => {
  assert.equal(
    joinFilters(['not vlan 5', 'not host 10.0.0.1'], 'udp'),
    '(not host 10.0.0.1) and (not vlan 5) and (udp)',
  )
  assert.equal(joinFilters(['vlan 5', 'vlan 5'], undefined), 'vlan 5')
  for (const other of ['mpls', 'VLAN 6', 'pppoes 7', 'geneve'])
    assert.throws(() => joinFilters(['not vlan 5', other], 'udp'), { code: 'out-of-bounds' })
})
