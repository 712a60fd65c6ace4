import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AXIS_PX } from '../../../../src/console/timeline/draw-axis.ts'
import { lanePxOf, visibleLanes } from '../../../../src/console/timeline/draw-lanes.ts'

const HEIGHT_PX = 600

test('few lanes share the room, a thousand are as low as can be read, and one is not a wall', () => {
  assert.equal(lanePxOf(HEIGHT_PX, 8), Math.floor((HEIGHT_PX - AXIS_PX) / 8))
  assert.equal(lanePxOf(HEIGHT_PX, 1_000), lanePxOf(0, 1))
  assert.equal(lanePxOf(HEIGHT_PX, 1), lanePxOf(HEIGHT_PX, 2))
})

test('the lanes that can be seen are those between the edges, and no more than there are', () => {
  const lanePx = lanePxOf(HEIGHT_PX, 1_000)
  assert.deepEqual(visibleLanes({ scrolledPx: 0, heightPx: AXIS_PX + 2 * lanePx, lanePx }, 1_000), [0, 2])
  const scrolledPx = 10 * lanePx + 1
  assert.deepEqual(visibleLanes({ scrolledPx, heightPx: AXIS_PX + 2 * lanePx, lanePx }, 1_000), [10, 13])
  assert.deepEqual(visibleLanes({ scrolledPx, heightPx: HEIGHT_PX, lanePx }, 12), [10, 12])
})
