import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFlow } from '../../../../../src/shared/query/flow/flow-filter.ts'
import { pivotParameters, pivotRange } from '../../../../../src/shared/query/flow/pivot.ts'

const AT_NS = 1_793_610_000_123_456_000n
const named = (name: string, text?: string) => ({ name, text })
const FLOW = readFlow({
  source: named('src', '10.0.0.1'),
  destination: named('dst', '10.0.1.2'),
  protocol: named('proto', 'icmp'),
  sourcePort: named('sport'),
  destinationPort: named('dport'),
})

test('the range is exact to the nanosecond, from before the first instant to after the last', () => {
  const range = pivotRange({ firstNs: AT_NS, lastNs: AT_NS + 5n }, { before: '30s', after: '5m' })
  assert.deepEqual(range, { beginNs: AT_NS - 30_000_000_000n, endNs: AT_NS + 300_000_000_005n })
  const wide = pivotRange({ firstNs: AT_NS, lastNs: AT_NS }, { before: '1w', after: '0s' })
  assert.deepEqual(wide, { beginNs: AT_NS - 604_800_000_000_000n, endNs: AT_NS })
})

test('margins that are no number with a unit are refused by name', () => {
  for (const text of ['', '5', '5min', '-5m', 'now', '1.5h', '+5m'])
    for (const name of ['before', 'after'])
      assert.throws(
        () => pivotRange({ firstNs: AT_NS, lastNs: AT_NS }, { before: '1s', after: '1s', [name]: text }),
        { code: 'bad-parameter', message: new RegExp(`^${name} must be a number with a unit`) },
      )
  assert.throws(() => pivotRange({ firstNs: 5n, lastNs: 5n }, { before: '1s', after: '1s' }), {
    code: 'bad-parameter',
  })
})

test('in a tunnel, or if asked to, the filter sees the innermost packet and has no VLAN tags', () => {
  const pivot = { flow: FLOW, firstNs: AT_NS, lastNs: AT_NS, isTunnelled: false }
  const margins = { before: '1s', after: '1s' }
  const plain = pivotParameters(pivot, margins)
  assert.equal(plain.FilterBPFDecap, undefined)
  assert.match(plain.FilterBPF, /vlan and .*vlan and /)
  const innermost = pivotParameters({ ...pivot, isTunnelled: true }, margins)
  assert.equal(innermost.FilterBPFDecap, 'true')
  assert.doesNotMatch(innermost.FilterBPF, /vlan/)
  assert.deepEqual(pivotParameters(pivot, margins, { isDecapsulated: true }), innermost)
})
