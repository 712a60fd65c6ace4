import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecordCursor } from '../../../../src/shared/pcap/record-cursor.ts'

/** Two records, with 3 captured bytes and with none. */
function records(isLittle: boolean): Uint8Array {
  const view = new DataView(new ArrayBuffer(35))
  for (const [index, value] of [7, 5, 3, 60].entries()) view.setUint32(index * 4, value, isLittle)
  for (const [index, value] of [8, 6, 0, 61].entries()) view.setUint32(19 + index * 4, value, isLittle)
  return new Uint8Array(view.buffer)
}

for (const isBigEndian of [false, true]) {
  test(`goes from record to record, ${isBigEndian ? 'big' : 'little'}-endian`, () => {
    const record = new RecordCursor(records(!isBigEndian), { isBigEndian, nanoseconds: true })
    const found: unknown[] = []
    for (; record.hasHeader; record.at = record.end)
      found.push([record.at, record.seconds, record.fraction, record.ns, record.originalLength])
    assert.deepEqual(found, [
      [0, 7, 5, 7_000_000_005n, 60],
      [19, 8, 6, 8_000_000_006n, 61],
    ])
    assert.equal(record.at, 35)
  })
}

test('fractions are microseconds by default', () => {
  assert.equal(new RecordCursor(records(true)).ns, 7_000_005_000n)
})

test('a cut record header does not count, and a record may end after the bytes', () => {
  const record = new RecordCursor(records(true).subarray(0, 18))
  assert.ok(record.hasHeader)
  assert.equal(record.end, 19)
  record.at = 3
  assert.ok(!record.hasHeader)
})

test('a record that claims more bytes than any may have is refused', () => {
  const bytes = records(true)
  new DataView(bytes.buffer).setUint32(8, 262_145, true)
  assert.throws(() => new RecordCursor(bytes).end, /a record of 262145 bytes/)
})
