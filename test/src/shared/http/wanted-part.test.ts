import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { wantedPart } from '../../../../src/shared/http/wanted-part.ts'

const ETAG = '"abc"'

function wanted(headers: Readonly<Record<string, string>>, { method = 'GET', bytes = 100 } = {}) {
  const part = wantedPart({ method, headers } as unknown as IncomingMessage, { etag: ETAG, bytes })
  return part.status === 206 ? [part.first, part.last] : part.status
}

for (const [range, part] of [
  ['bytes=0-0', [0, 0]],
  ['bytes=10-19', [10, 19]],
  ['bytes=99-', [99, 99]],
  ['bytes=0-1000', [0, 99]],
  ['bytes=0-99999999999999999999', [0, 99]],
  ['bytes=-1', [99, 99]],
  ['bytes=-100', [0, 99]],
  ['bytes=-101', [0, 99]],
  ['BYTES= 5-6 ,', [5, 6]],
  ['bytes=100-', 416],
  ['bytes=100-200', 416],
  ['bytes=99999999999999999999-', 416],
  ['bytes=-0', 416],
  ['bytes=9-8', 200],
  ['bytes=200-100', 200],
  ['bytes=-', 200],
  ['bytes=', 200],
  ['bytes=a-b', 200],
  ['bytes=1-2x', 200],
  ['bytes=+1-2', 200],
  ['bytes=1', 200],
  ['bytes=0-1,5-6', 200],
  ['bytes=0-1,500-', 200],
  ['lines=0-1', 200],
  ['', 200],
] as const) {
  test(`Range: ${range} of 100 bytes`, () => assert.deepEqual(wanted({ range }), part))
}

test('nothing of an empty file can be named', () => {
  assert.equal(wanted({}, { bytes: 0 }), 200)
  assert.equal(wanted({ range: 'bytes=0-' }, { bytes: 0 }), 416)
  assert.equal(wanted({ range: 'bytes=-5' }, { bytes: 0 }), 200)
})

test('HEAD describes the whole file', () => {
  assert.equal(wanted({ range: 'bytes=0-1' }, { method: 'HEAD' }), 200)
})

test('If-Range requires exactly this file, otherwise the whole is sent', () => {
  const range = 'bytes=10-'
  assert.deepEqual(wanted({ range, 'if-range': ETAG }), [10, 99])
  for (const ifRange of ['"other"', 'W/"abc"', 'abc', 'Mon, 23 Nov 2026 00:00:00 GMT'])
    assert.equal(wanted({ range, 'if-range': ifRange }), 200, ifRange)
  assert.equal(wanted({ range: 'bytes=100-', 'if-range': '"other"' }), 200)
})

test('a client that has the file gets none, before any range is considered', () => {
  for (const has of [ETAG, `"x", ${ETAG}`, `W/${ETAG}`, '*', ' * ']) {
    assert.equal(wanted({ 'if-none-match': has }), 304, has)
    assert.equal(wanted({ 'if-none-match': has }, { method: 'HEAD' }), 304, has)
    assert.equal(wanted({ 'if-none-match': has, range: 'bytes=100-' }), 304, has)
  }
  for (const has of ['"other"', 'abc', '']) assert.equal(wanted({ 'if-none-match': has }), 200, has)
})
