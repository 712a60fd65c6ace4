import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCaptureEntry } from '../../../../../src/gateway/fleet/captures/capture-entry.ts'

const spanOf = (json: string) => {
  const { startNs, endNs } = readCaptureEntry('d0', json)
  return [startNs, endNs]
}

test('times are texts of nanoseconds', () => {
  const json = '{"StreamName":"a","StartTS":"1793610000000000001","EndTS":"1793610060000000002"}'
  assert.deepEqual(spanOf(json), [1793610000000000001n, 1793610060000000002n])
  assert.deepEqual(spanOf('{"StreamName":"a","StartTS":"soon","EndTS":null}'), [0n, undefined])
})

test('numbers are read exactly, in the unit given by their digits', () => {
  const span = (start: string, end: string) => spanOf(`{"StreamName":"a","StartTS": ${start},"EndTS":${end}}`)
  assert.deepEqual(span('1793610000000000001', '1793610060000000002'), [
    1793610000000000001n,
    1793610060000000002n,
  ])
  assert.deepEqual(span('1793610000', '1793610060000'), [
    1793610000n * 1_000_000_000n,
    1793610060n * 1_000_000_000n,
  ])
  assert.deepEqual(span('1793610000000000', '1e18'), [1793610000n * 1_000_000_000n, undefined])
})

test('a name may be long, and must be there', () => {
  const name = 'x'.repeat(300)
  assert.equal(readCaptureEntry('d0', JSON.stringify({ Path: name })).name, name)
  for (const entry of [{}, { StreamName: 5 }, { StreamName: 'x'.repeat(1_025) }])
    assert.throws(() => readCaptureEntry('d0', JSON.stringify(entry)), { code: 'device-protocol' })
})

test('entries passed on have texts of nanoseconds, and everything else as the device sent it', () => {
  const json = '{"StreamName":"a","StartTS":1793610000.25,"EndTS":0,"Other":9007199254740993}'
  const entry = readCaptureEntry('d0', json)
  assert.deepEqual([entry.startNs, entry.endNs], [1793610000n * 1_000_000_000n, undefined])
  assert.equal(
    entry.json,
    '{"StreamName":"a","StartTS":"1793610000000000000","EndTS":null,"Other":9007199254740993}',
  )
})
