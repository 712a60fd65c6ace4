// Server-sent events of a device, in pieces of any size.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventBlocks } from '../../../../../src/gateway/fleet/events/event-blocks.ts'

const TEXT =
  ': hello\nretry: 2000\n\nid: 7\nevent: capture-started\ndata: {"name":"é"}\n\n' +
  ': keep-alive\n\ndata:{"a":\r\ndata: 1}\r\n\r\nevent: without-data\n\n'
const BLOCKS = [
  { id: '7', name: 'capture-started', data: '{"name":"é"}' },
  { id: '', name: '', data: '{"a":\n1}' },
]

test('the same events come of pieces of any size', () => {
  const bytes = Buffer.from(TEXT)
  for (let size = 1; size <= bytes.length; size++) {
    const blocks = new EventBlocks()
    const found = []
    for (let at = 0; at < bytes.length; at += size) found.push(...blocks.push(bytes.subarray(at, at + size)))
    assert.deepEqual(found, BLOCKS, `pieces of ${size}`)
  }
})

test('an event without end is refused, in one line or in many', () => {
  const tooLong = { message: /more than 65536 characters/ }
  assert.throws(() => new EventBlocks().push(Buffer.from(`data: ${'x'.repeat(70_000)}`)), tooLong)
  const blocks = new EventBlocks()
  const line = Buffer.from(`data: ${'x'.repeat(100)}\n`)
  assert.throws(() => {
    for (let lines = 0; lines < 1_000; lines++) blocks.push(line)
  }, tooLong)
})

test('comments alone are never too long', () => {
  const blocks = new EventBlocks()
  for (let lines = 0; lines < 20_000; lines++) assert.deepEqual(blocks.push(Buffer.from(': there\n\n')), [])
})
