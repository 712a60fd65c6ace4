import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  bytesOverTime,
  gapParts,
  highestBytes,
  pointedInstant,
  valuesAt,
  valueTexts,
} from '../../../../src/console/timeline/lane-values.ts'

const S_NS = 1_000_000_000n
const stretch = (fromS: number, toS: number) => ({
  fromNs: String(BigInt(fromS) * S_NS),
  toNs: String(BigInt(toS) * S_NS),
})
const ACTIVITY = {
  device: 'a',
  packets: [0, 3_000, 10, 0],
  bytes: [0, 4_194_304, 600, 0],
  exact: true,
  gaps: [stretch(0, 2), stretch(6, 7)],
  dropped: [{ ...stretch(3, 5), packets: '1200' }],
  trimmed: [],
  damaged: [],
  view: { fromNs: 0n, toNs: 7n * S_NS },
  bucketNs: 2n * S_NS,
}

describe('the values of a lane', () => {
  test('are those of the part that the instant is in, with its losses', () => {
    assert.deepEqual(valuesAt(ACTIVITY, 3n * S_NS), {
      lengthNs: 2n * S_NS,
      packets: 3_000,
      bytes: 4_194_304,
      lost: 1_200n,
      isGap: false,
    })
    assert.equal(valuesAt(ACTIVITY, 6n * S_NS)?.lengthNs, S_NS, 'the last part ends with the range')
    assert.equal(valuesAt(ACTIVITY, 7n * S_NS), undefined)
    assert.equal(valuesAt(ACTIVITY, -1n), undefined)
  })

  test('are rates, and counts where the time is short for one', () => {
    const texts = (ns: bigint) => {
      const values = valuesAt(ACTIVITY, ns)
      return values && valueTexts(values)
    }
    assert.deepEqual(texts(3n * S_NS), ['1,500 packets/s', '2.00 MiB/s', '1,200 packets lost'])
    assert.deepEqual(texts(0n), ['nothing captured'])
    const short = { lengthNs: 10_000_000n, packets: 3, bytes: 420, lost: 0n, isGap: false }
    assert.deepEqual(valueTexts(short), ['3 packets', '420 B in 10 ms'])
    assert.equal(bytesOverTime(420, 9_437_218n), '420 B in 9.4 ms')
  })

  test('of which the highest is that of what is shown', () => {
    assert.equal(highestBytes(ACTIVITY, ACTIVITY.view), 4_194_304)
    assert.equal(highestBytes(ACTIVITY, { fromNs: 4n * S_NS, toNs: 8n * S_NS }), 600)
    assert.equal(highestBytes(ACTIVITY, { fromNs: 20n * S_NS, toNs: 30n * S_NS }), 0)
  })

  test('have an instant as exact as a pixel', () => {
    const at = (spanNs: bigint) =>
      pointedInstant(1_793_610_060_123_456_789n, {
        view: { fromNs: 0n, toNs: spanNs },
        widthPx: 1_000,
        zone: 'UTC',
      })
    assert.equal(at(86_400n * S_NS), '2026-11-02 09:01:00')
    assert.equal(at(S_NS), '2026-11-02 09:01:00.123')
    assert.equal(at(4_000n), '2026-11-02 09:01:00.123456789')
  })
})

test('a gap is one of a capture inside of captures alone', () => {
  const captures = [
    { fromNs: 60n, toNs: 80n },
    { fromNs: 20n, toNs: 40n },
    { fromNs: 30n, toNs: 35n },
    { fromNs: 200n, toNs: 300n },
  ]
  const parts = (fromNs: string, toNs: string) =>
    gapParts({ fromNs, toNs }, captures).map((part) => [part.fromNs, part.toNs, part.isInside])
  assert.deepEqual(parts('0', '100'), [
    [0n, 20n, false],
    [20n, 40n, true],
    [40n, 60n, false],
    [60n, 80n, true],
    [80n, 100n, false],
  ])
  assert.deepEqual(parts('25', '30'), [[25n, 30n, true]])
  assert.deepEqual(parts('100', '150'), [[100n, 150n, false]])
})
