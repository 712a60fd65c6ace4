import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failureInLine } from '../../../../../src/gateway/fleet/questions/failure-in-line.ts'

const shown = (code: string, detail = '/srv/store is gone') => {
  const { code: ours, message } = failureInLine('d0', { code, detail })
  return [ours, message]
}

test('an error that a device may have keeps its code, and its words if they are for callers', () => {
  assert.deepEqual(shown('bad-bpf', 'syntax error'), ['bad-bpf', 'syntax error'])
  assert.deepEqual(shown('store-unavailable'), [
    'store-unavailable',
    'device d0: The store cannot be read or written',
  ])
})

test('any other error in a line is named as it is, not by a status that the device did not send', () => {
  for (const code of ['made-up', 'internal-error', 'unauthenticated', 'toString'])
    assert.deepEqual(shown(code), [
      'device-protocol',
      /^[a-z-]+$/.test(code)
        ? `device d0 ended its answer with the error ${code}; its log has the details`
        : 'device d0 ended its answer with an error without a valid code; its log has the details',
    ])
  for (const code of ['', 'x\u001b[2J', '/srv/store', 'a'.repeat(65)])
    assert.deepEqual(shown(code), [
      'device-protocol',
      'device d0 ended its answer with an error without a valid code; its log has the details',
    ])
})
