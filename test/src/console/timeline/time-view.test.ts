import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { instantAt, moved, placeOf, zoomed } from '../../../../src/console/timeline/time-view.ts'

const FROM_NS = 1_793_610_000_000_000_001n
const HOUR_NS = 3_600_000_000_000n
const HOUR = { fromNs: FROM_NS, toNs: FROM_NS + HOUR_NS }

describe('the view of the timeline', () => {
  test('keeps the instant below the pointer in its place while it zooms, to the nanosecond at its edges', () => {
    for (const place of [0, 0.25, 0.5, 1]) {
      const ns = instantAt(HOUR, place)
      for (const factor of [0.5, 0.001, 2, 30]) {
        const view = zoomed(HOUR, factor, ns)
        assert.ok(Math.abs(placeOf(view, ns) - place) < 1e-6, `${place} by ${factor}`)
      }
    }
    assert.equal(zoomed(HOUR, 0.5, FROM_NS).fromNs, FROM_NS)
  })

  test('ends where a pixel would be less than a nanosecond, and where no PCAP can be', () => {
    const nearest = zoomed(HOUR, 1e-30, FROM_NS)
    assert.equal(nearest.toNs - nearest.fromNs, 4_000n)
    assert.equal(instantAt(nearest, 0.5), FROM_NS + 2_000n)
    const all = zoomed(HOUR, 1e30, FROM_NS)
    assert.deepEqual(all, { fromNs: 0n, toNs: 4_294_967_296_000_000_000n })
    assert.deepEqual(moved(all, 5), all)
  })

  test('moves by parts of itself', () => {
    assert.deepEqual(moved(HOUR, -0.5), { fromNs: FROM_NS - HOUR_NS / 2n, toNs: FROM_NS + HOUR_NS / 2n })
  })
})
