import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createProgressBar,
  formatBytes,
  progressLine,
} from '../../../../../src/client/command/common/progress-bar.ts'

test('the line shows bar, share, amount, rate and ETA', () => {
  assert.equal(
    progressLine('import a.pcap', { done: 50_000_000, total: 100_000_000, elapsedS: 2 }),
    'import a.pcap [############------------] 50% 50.0 MB 25.0 MB/s ETA 2 s',
  )
})

test('nothing to do and nothing done yet are shown without division by zero', () => {
  assert.equal(
    progressLine('x', { done: 0, total: 0, elapsedS: 0 }),
    'x [------------------------] 0% 0 B 0 B/s',
  )
})

test('what was there before counts for the share, not for the rate', () => {
  assert.equal(
    progressLine('x', { done: 60_000_000, total: 80_000_000, elapsedS: 1, from: 40_000_000 }),
    'x [##################------] 75% 60.0 MB 20.0 MB/s ETA 1 s',
  )
})

test('without a total there is the amount and the rate', () => {
  assert.equal(progressLine('x', { done: 60_000_000, total: undefined, elapsedS: 2 }), 'x 60.0 MB 30.0 MB/s')
})

test('bytes are shown with three digits at most', () => {
  assert.deepEqual([999, 1000, 123_456, 5_250_000_000].map(formatBytes), [
    '999 B',
    '1.0 kB',
    '123 kB',
    '5.3 GB',
  ])
})

test('on a terminal the line is removed for messages', () => {
  const written: string[] = []
  const bar = createProgressBar('import', {
    out: { isTTY: true, write: (text: string) => written.push(text) > 0 } as never,
  })
  bar.update(1, 2)
  bar.clear()
  assert.ok(written[0]?.startsWith('\r\u001b[Kimport [####'), written[0])
  assert.deepEqual(written.slice(1), ['\r\u001b[K'])
})

test('off a terminal only the summary is written', () => {
  const written: string[] = []
  const bar = createProgressBar('import', {
    out: { isTTY: false, write: (text: string) => written.push(text) > 0 } as never,
  })
  bar.update(1, 2)
  bar.clear()
  bar.finish('done')
  assert.deepEqual(written, ['import: done\n'])
})
