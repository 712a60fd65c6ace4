import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Metrics } from '../../../src/base/metrics.ts'

test('however many ask, a twentieth of the time goes into the text of the metrics', async () => {
  let nowMs = 1_000
  const clock = mock.method(performance, 'now', () => nowMs)
  try {
    const metrics = new Metrics()
    let reads = 0
    metrics.figures('taken', 'How often it was read', [], (set) => {
      reads += 1
      nowMs += 10
      set(reads)
    })
    const taken = async () => /^capfleet_taken (\d+)$/m.exec(await metrics.text())?.[1]
    assert.equal(await taken(), '1')
    nowMs += 199
    assert.equal(await taken(), '1', 'it took 10 ms and stands for 200')
    nowMs += 1
    assert.equal(await taken(), '2')
  } finally {
    clock.mock.restore()
  }
})

test('what the metrics cannot read by themselves is read before each text that is made', async () => {
  const metrics = new Metrics()
  let known = 0
  metrics.figures('known', 'What was refreshed', [], (set) => set(known))
  const text = await metrics.text(async () => {
    known = 7
  })
  assert.match(text, /^capfleet_known 7$/m)
})
