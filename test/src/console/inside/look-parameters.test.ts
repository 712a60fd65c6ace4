import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLook, LOOK_PAIRS } from '../../../../src/console/inside/look-parameters.ts'

const path = '/devices/nyc1/api/v1/pcap/timerange'
const look = new URLSearchParams([['TSBegin', '1'], ...LOOK_PAIRS.map((pair) => [...pair])]).toString()

test("a receipt of a look inside is recognised, and no user's download is taken for one", () => {
  assert.ok(isLook({ path, query: look }))
  assert.ok(!isLook({ path, query: 'TSBegin=1&MaxPackets=200' }))
  assert.ok(!isLook({ path: '/api/v1/pcap/timerange', query: look }))
})
