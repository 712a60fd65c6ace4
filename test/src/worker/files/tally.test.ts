import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkpoint } from '../../../../src/gateway/export/export-record.ts'
import { type JoinedWindow, tallied } from '../../../../src/worker/files/tally.ts'

test('a device whose packets were all dropped as copies has no times', () => {
  const empty = { packets: '0', bytes: '0', firstNs: null, lastNs: null, outOfOrder: 0, holes: [] }
  const before = {
    devices: [
      { device: 'east', ...empty },
      { device: 'west', ...empty },
    ],
    fetchedBytes: '0',
  } as unknown as Checkpoint
  const input = { firstNs: 5n, lastNs: 9n, outOfOrder: 0 }
  const joined = {
    window: { beginNs: '0', endNs: '10', leftOut: [] },
    inputs: [
      { name: 'east', packets: 2, bytes: 100, duplicates: 0, ...input },
      { name: 'west', packets: 0, bytes: 0, duplicates: 2, ...input },
    ],
    came: [],
  } as unknown as JoinedWindow
  const { devices } = tallied(before, joined)
  assert.deepEqual(
    devices.map(({ packets, firstNs, lastNs }) => [packets, firstNs, lastNs]),
    [
      ['2', '5', '9'],
      ['0', null, null],
    ],
  )
})
