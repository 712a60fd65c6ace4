import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toExactJson } from '../../../appliance/system-status/exact-json.ts'

test('a bigint is a JSON number with all its digits, with a string beside it where a double rounds', () => {
  assert.equal(toExactJson({ a: 5n, b: 2n ** 53n - 1n }), '{"a":5,"b":9007199254740991}')
  assert.equal(
    toExactJson({ outer: { time: 1_795_171_264_123_456_789n }, list: ['x'], n: -(2n ** 60n) }),
    '{"outer":{"time":1795171264123456789,"timeExact":"1795171264123456789"},"list":["x"],' +
      '"n":-1152921504606846976,"nExact":"-1152921504606846976"}',
  )
})
