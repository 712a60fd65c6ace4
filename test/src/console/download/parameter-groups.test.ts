import assert from 'node:assert/strict'
import { test } from 'node:test'
import { downloadPairs, exportPairs } from '../../../../src/console/download/parameter-groups.ts'

const unit = (TSBegin: string, TSEnd: string) => new Map(downloadPairs({ TSBegin, TSEnd })).get('TSUnit')

test('a range in nanoseconds says so, whatever its length: 17 digits would mean microseconds', () => {
  assert.equal(unit('94694400000000000', '1793610060000000000'), 'nanos')
  assert.equal(unit('1', 'now'), 'nanos')
  assert.equal(new Map(exportPairs({ TSBegin: '1', TSEnd: '2' }, false)).get('TSUnit'), 'nanos')
})

test('a range of days has their zone, for a download, an export and a schedule; any other range has none', () => {
  const days = { TSBegin: 'yesterday', TSEnd: 'today', TSZone: 'Asia/Tokyo', Cron: '0 3 * * *' }
  for (const pairs of [downloadPairs(days), exportPairs(days, false), exportPairs(days, true)]) {
    const { TSBegin, TSEnd, TSZone, TSUnit } = Object.fromEntries(pairs)
    assert.deepEqual([TSBegin, TSEnd, TSZone, TSUnit], ['yesterday', 'today', 'Asia/Tokyo', undefined])
  }
  const relative = new Map(downloadPairs({ TSBegin: '-1h', TSEnd: 'now', TSZone: 'Asia/Tokyo' }))
  assert.equal(relative.get('TSZone'), undefined)
})

test('a relative range needs no unit, and what is no time keeps the message that names all forms', () => {
  assert.equal(unit('-15m', 'now'), undefined)
  assert.equal(unit('1', 'nonsense'), undefined)
})
