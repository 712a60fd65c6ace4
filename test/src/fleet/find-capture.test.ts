import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../src/base/error.ts'
import type { CaptureList } from '../../../src/fleet/capture-lists.ts'
import { findCapture } from '../../../src/fleet/find-capture.ts'

const listOf = (device: string, ...names: readonly string[]): CaptureList =>
  ({ device, captures: names.map((name) => ({ name, startNs: 1n, endNs: 2n })) }) as unknown as CaptureList
const LISTS = [
  listOf('d0', 'trade_20261120_0930', 'lab_20261120_0930'),
  listOf('d1', 'lab_20261121_0930', 'lab_20261121_0930_2'),
]
const DOWN = new CapfleetError('device-unreachable', 'device d2 does not answer')
const find = (name: string, unreachable: readonly { device: string; error: CapfleetError }[] = []) =>
  findCapture(name, { lists: LISTS, unreachable })

test('a full name, or the base name that one device alone has captures of', () => {
  assert.equal(find('lab_20261121_0930'), 'd1')
  assert.equal(find('trade'), 'd0')
})

test('a base name on several devices is ambiguous', () => {
  assert.throws(() => find('lab'), { code: 'ambiguous-capture', message: /d0, d1/ })
})

test('a capture that no device has is unknown, unless a device could not be asked: it may have it', () => {
  assert.throws(() => find('tade_20261120_0930'), { code: 'unknown-capture' })
  const unreachable = [{ device: 'd2', error: DOWN }]
  assert.throws(() => find('tade_20261120_0930', unreachable), DOWN)
  assert.equal(find('trade', unreachable), 'd0', 'what is found needs no other device')
})
