import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createProgressBar, progressLine } from '../../../../../src/client/command/common/progress-bar.ts'

const MIB = 1_048_576

test('the line shows bar, share, amount, rate and ETA', () => {
  assert.equal(
    progressLine('import a.pcap', { done: 50 * MIB, total: 100 * MIB, elapsedS: 2 }),
    'import a.pcap [############------------] 50% 50.0 MiB 25.0 MiB/s ETA 2 s',
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
    progressLine('x', { done: 60 * MIB, total: 80 * MIB, elapsedS: 1, from: 40 * MIB }),
    'x [##################------] 75% 60.0 MiB 20.0 MiB/s ETA 1 s',
  )
})

test('without a total there is the amount and the rate', () => {
  assert.equal(progressLine('x', { done: 60 * MIB, total: undefined, elapsedS: 2 }), 'x 60.0 MiB 30.0 MiB/s')
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
