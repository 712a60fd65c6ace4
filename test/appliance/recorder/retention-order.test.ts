import assert from 'node:assert/strict'
import { test } from 'node:test'
import { removalOrder } from '../../../appliance/recorder/retention-order.ts'
import type { StoredCapture } from '../../../appliance/store/stored-capture.ts'
import { type CaptureChanges, captureRecord } from '../../support/packets/capture-records.ts'

const CREATED_NS = BigInt(Date.parse('2026-01-01T00:00:00Z')) * 1_000_000n

function capture(name: string, ports: readonly (readonly bigint[])[], changes: CaptureChanges = {}) {
  return captureRecord(name, {
    type: 'capture',
    createdAt: '2026-01-01T00:00:00Z',
    streams: ports.map((ends, port) => ({
      port,
      linkType: 1,
      snaplen: 262_144,
      segments: ends.map((after, i) => {
        const maxNs = CREATED_NS + after
        return { number: i + 1, minNs: maxNs, maxNs, packets: 1n, bytes: 40n }
      }),
    })),
    ...changes,
  })
}

const orderOf = (captures: readonly StoredCapture[]): string[] =>
  removalOrder(captures).map(({ capture: { name }, segment }) => `${name} ${segment.port}.${segment.number}`)

test('the capture that was created first goes first, whatever its name and its packets', () => {
  const younger = capture('a', [[1n]], { createdAt: '2026-02-01T00:00:00Z' })
  const older = capture('b', [[9n, 10n]])
  assert.deepEqual(orderOf([younger, older]), ['b 0.1', 'b 0.2', 'a 0.1'])
})

test('of several ports the segment goes first that ended first', () => {
  assert.deepEqual(orderOf([capture('a', [[1n, 4n, 9n], [6n]])]), ['a 0.1', 'a 0.2', 'a 1.1', 'a 0.3'])
})

test('a port loses its segments in their order, also where the clock went back', () => {
  assert.deepEqual(
    orderOf([
      capture('a', [
        [50n, 2n, 60n],
        [20n, 55n],
      ]),
    ]),
    ['a 1.1', 'a 0.1', 'a 0.2', 'a 1.2', 'a 0.3'],
  )
})

test('the last finished segment of a port stays while the capture goes on', () => {
  const ports = [[1n, 4n], [2n], []]
  assert.deepEqual(orderOf([capture('a', ports, { state: 'active' })]), ['a 0.1'])
  assert.deepEqual(orderOf([capture('a', ports, { state: 'closed' })]), ['a 0.1', 'a 1.1', 'a 0.2'])
})

test('an imported packet is as old as its import', () => {
  const [imported] = removalOrder([capture('a', [[-1_000n]], { type: 'import' })])
  assert.equal(imported?.storedNs, CREATED_NS)
})
