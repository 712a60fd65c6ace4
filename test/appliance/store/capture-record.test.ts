import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeRecord, encodeRecord } from '../../../appliance/store/capture-record.ts'

const record = {
  name: 'a_20261120_0930',
  type: 'capture' as const,
  state: 'active' as const,
  description: 'Zürich, "east"',
  baseName: 'a',
  createdAt: '2026-11-20T09:30:00.000Z',
  startNs: 1_700_000_000_000_000_000n,
  endNs: 1_700_000_000_000_000_001n,
  sources: [],
  packetsOutOfTimeRange: 0n,
  damages: [],
  revision: 7,
}

test('a record is read as it was written', () => {
  assert.deepEqual(decodeRecord(encodeRecord(record)), record)
})

test('a record of which any byte has changed is no record', () => {
  const sound = Buffer.from(encodeRecord(record))
  for (let at = 0; at < sound.length; at++) {
    for (const bit of [0, 3, 5]) {
      const damaged = Buffer.from(sound)
      damaged.writeUInt8(damaged.readUInt8(at) ^ (1 << bit), at)
      assert.throws(() => decodeRecord(damaged.toString('utf8')), `byte ${at}, bit ${bit}`)
    }
  }
  for (let length = 0; length < sound.length; length++) {
    assert.throws(() => decodeRecord(sound.subarray(0, length).toString('utf8')), `${length} bytes`)
  }
})
