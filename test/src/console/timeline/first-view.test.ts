import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NS_PER_S } from '../../../../src/console/base/instants.ts'

// The page derives the gateway's address from its own.
Object.assign(globalThis, { location: new URL('http://127.0.0.1/') })
const { firstView } = await import('../../../../src/console/timeline/first-view.ts')

const NOW_NS = 1_793_610_000n * NS_PER_S
const DAY_S = 86_400n
const ago = (seconds: bigint) => NOW_NS - seconds * NS_PER_S
const capture = (fromNs: bigint, toNs: bigint, isActive = false) => ({
  device: 'a',
  name: 'x',
  fromNs,
  toNs,
  isActive,
  packets: '1',
  bytes: '1',
})
/** The view, in seconds before now; without the margin of a tenth on both sides. */
const shown = (captures: readonly ReturnType<typeof capture>[]) => {
  const { fromNs, toNs } = firstView(captures, NOW_NS)
  const spanNs = ((toNs - fromNs) * 10n) / 12n
  return [(NOW_NS - fromNs - spanNs / 10n) / NS_PER_S, (NOW_NS - toNs + spanNs / 10n) / NS_PER_S]
}

test('first the newest capture is shown, however old others are', () => {
  const captures = [capture(ago(7_200n), ago(3_600n)), capture(ago(30n * DAY_S), ago(29n * DAY_S))]
  assert.deepEqual(shown(captures), [7_200n, 3_600n])
})

test('while captures run, what they have until now is shown: a day of it at most, and a quarter of an hour at least', () => {
  const ended = capture(ago(50n), ago(40n))
  const running = (seconds: bigint) => capture(ago(seconds), ago(0n), true)
  assert.deepEqual(shown([ended, running(7_200n), running(9_000n)]), [9_000n, 0n])
  assert.deepEqual(shown([running(40n * DAY_S)]), [DAY_S, 0n])
  assert.deepEqual(shown([running(1n)]), [900n, 0n])
})

test('without a capture the last day is shown', () => {
  assert.deepEqual(firstView([], NOW_NS), { fromNs: ago(DAY_S), toNs: NOW_NS })
})
