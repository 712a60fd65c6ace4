import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlushWatch } from '../../../appliance/downloads/flush-watch.ts'
import type { CaptureReport } from '../../../appliance/link/capture-report.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'

const never = new AbortController().signal

function report(changes: Partial<CaptureReport>, flushedNs = 0n): CaptureReport {
  return {
    state: 'running',
    name: 'live_20260101_0000',
    baseName: 'live',
    scheduleName: '',
    startNs: 1n,
    ports: [0],
    counts: {
      packets: 0n,
      bytes: 0n,
      drops: 0n,
      ringDrops: 0n,
      diskDrops: 0n,
      filteredPackets: 0n,
      fcsErrors: 0n,
      pendingPackets: 0n,
      pendingBytes: 0n,
      lastPacketNs: 0n,
      flushedNs,
      diskErrors: 0n,
      diskMessage: '',
      bitsPerSecond: 0,
      packetsPerSecond: 0,
      diskDropsPerSecond: 0,
      ports: [],
    },
    message: '',
    waitingRow: '',
    skippedRow: '',
    clockHold: '',
    ...changes,
  }
}

test('one question serves all who wait, and a further one waits a moment', async () => {
  const askedMs: number[] = []
  const watch = new FlushWatch({
    captureReport: async () => report({}, BigInt(askedMs.push(performance.now()))),
  })
  const states = await Promise.all(Array.from({ length: 4 }, () => watch.next(never)))
  assert.deepEqual(
    states.map(({ flushedNs }) => flushedNs),
    [1n, 1n, 1n, 1n],
  )
  assert.equal((await watch.next(never)).flushedNs, 2n)
  const [first = 0, second = 0] = askedMs
  assert.ok(second - first >= 150, 'no storm of questions')
})

test('a capture continues through a roll; without a name or ports nothing comes', async () => {
  const isCapturing = async (changes: Partial<CaptureReport>) =>
    (await new FlushWatch({ captureReport: async () => report(changes) }).next(never)).isCapturing
  assert.equal(await isCapturing({}), true)
  assert.equal(await isCapturing({ state: 'rolling', name: '' }), true)
  assert.equal(await isCapturing({ state: 'starting', name: '' }), true)
  assert.equal(await isCapturing({ state: 'stopping' }), true)
  assert.equal(await isCapturing({ state: 'idle', name: '', ports: [] }), false)
  assert.equal(await isCapturing({ ports: [] }), false)
})

test('a recorder that was killed is asked again until it is back', async () => {
  let asked = 0
  const watch = new FlushWatch({
    captureReport: async () => {
      asked += 1
      if (asked < 3) throw new CapfleetError('store-unavailable', 'no recorder runs')
      return report({}, 7n)
    },
  })
  assert.equal((await watch.next(never)).flushedNs, 7n)
})

test('a client that leaves stops waiting', async () => {
  const watch = new FlushWatch({ captureReport: () => new Promise(() => undefined) })
  const leaving = new AbortController()
  const waiting = watch.next(leaving.signal)
  leaving.abort(new Error('gone'))
  await assert.rejects(waiting, { message: 'gone' })
})
