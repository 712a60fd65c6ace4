import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditFacts, shownFact } from '../../../../src/console/access/audit-facts.ts'

const LINE = {
  chain: 'c',
  seq: 1,
  at: '2026-11-28T15:00:00.000Z',
  event: 'download.begin',
  user: 'ann',
  address: '127.0.0.1',
  credential: 'password',
  requestId: null,
  prev: '0',
  hash: '1',
  devices: ['a', 'b'],
  forcedFilters: [],
  beginNs: '1793610000000000001',
  query: 'TSBegin=1793610000000000001&FilterBPF=host%201.2.3.4',
  parameters: { TSBegin: '1793610000000000001' },
  error: { code: 'x' },
}

test('a line is its facts: a query by its parameters, nothing twice, and no empty ones', () => {
  assert.deepEqual(auditFacts(LINE), [
    ['credential', 'password'],
    ['devices', 'a, b'],
    ['beginNs', '1793610000000000001'],
    ['TSBegin', '1793610000000000001'],
    ['FilterBPF', 'host 1.2.3.4'],
    ['error', '{"code":"x"}'],
  ])
})

test('an instant is exact to the nanosecond, and other numbers of 19 digits stay as they are', () => {
  assert.equal(shownFact('beginNs', '1793610000000000001', 'UTC'), '2026-11-02 09:00:00.000000001')
  assert.equal(shownFact('bytes', '1793610000000000001', 'UTC'), '1793610000000000001')
  assert.equal(shownFact('TSBegin', '-1h', 'UTC'), '-1h')
})
