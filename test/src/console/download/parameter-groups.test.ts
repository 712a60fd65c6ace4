import assert from 'node:assert/strict'
import { test } from 'node:test'
import { downloadPairs, exportPairs } from '../../../../src/console/download/parameter-groups.ts'

const unit = (TSBegin: string, TSEnd: string) => new Map(downloadPairs({ TSBegin, TSEnd })).get('TSUnit')

test('a range in nanoseconds says so, whatever its length: 17 digits would mean microseconds', () => {
  assert.equal(unit('94694400000000000', '1793610060000000000'), 'nanos')
  assert.equal(unit('1', 'now'), 'nanos')
  assert.equal(new Map(exportPairs({ TSBegin: '1', TSEnd: '2' }, false)).get('TSUnit'), 'nanos')
})

test('a relative range needs no unit, and what is no time keeps the message that names all forms', () => {
  assert.equal(unit('-15m', 'now'), undefined)
  assert.equal(unit('1', 'nonsense'), undefined)
})
