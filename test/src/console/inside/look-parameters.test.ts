import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  DISSECTED_SIZE,
  isLook,
  lookPairs,
  TABLE_SIZE,
} from '../../../../src/console/inside/look-parameters.ts'

const path = '/devices/nyc1/api/v1/pcap/timerange'

test("a receipt of a look inside is recognised, and no user's download is taken for one", () => {
  for (const size of [TABLE_SIZE, DISSECTED_SIZE]) {
    const look = new URLSearchParams([
      ['TSBegin', '1'],
      ...lookPairs(size).map((pair) => [...pair]),
    ]).toString()
    assert.ok(isLook({ path, query: look }))
    assert.ok(!isLook({ path: '/api/v1/pcap/timerange', query: look }))
  }
  assert.ok(!isLook({ path, query: 'TSBegin=1&MaxPackets=200' }))
})
