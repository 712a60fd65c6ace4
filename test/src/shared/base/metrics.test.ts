import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Metrics } from '../../../../src/shared/base/metrics.ts'

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
    const taken = async () => Number(/^capfleet_taken (\d+)$/m.exec(await metrics.text())?.[1])
    for (let at = 1; at <= 50; at++) assert.equal(await taken(), at, 'fresh for who asks now and then')
    assert.equal(await taken(), 51, 'what 500 ms were added meanwhile')
    for (let at = 0; at < 1_000; at++) {
      nowMs += 1
      await taken()
    }
    assert.ok(reads >= 55 && reads <= 60, `${reads - 51} texts of 10 ms in a second`)
    nowMs += 60_000
    assert.equal(await taken(), reads, 'fresh again after a pause')
  } finally {
    clock.mock.restore()
  }
})

test('what the metrics cannot read by themselves is read before each text that is made', async () => {
  const metrics = new Metrics()
  let known = 0
  metrics.figures('known', 'What was refreshed', [], (set) => set(known))
  metrics.beforeText(async () => {
    known += 7
  })
  assert.match(await metrics.text(), /^capfleet_known 7$/m)
  assert.match(await metrics.text(), /^capfleet_known 14$/m)
})

test('series that are known begin with 0, and no gauge is called like a counter', async () => {
  const metrics = new Metrics()
  const ended = metrics.counter('ended_total', 'What ended', ['how'], [{ how: 'well' }, { how: 'badly' }])
  ended.inc({ how: 'well' })
  const text = await metrics.text()
  assert.match(text, /^capfleet_ended_total\{how="well"\} 1\ncapfleet_ended_total\{how="badly"\} 0$/m)
  assert.match(text, /^capfleet_build_info\{version="[\d.]+"\} 1$/m)
  assert.doesNotMatch(text, /^# TYPE \w+_total gauge$/m)
})

test('clients that ask together get one text', async () => {
  const metrics = new Metrics()
  let reads = 0
  metrics.gauge('reads', 'How often this was read', [], (gauge) => gauge.set(++reads))
  const texts = await Promise.all(Array.from({ length: 32 }, () => metrics.text()))
  assert.equal(reads, 1)
  for (const text of texts) assert.match(text, /capfleet_reads 1\n/)
  assert.match(await metrics.text(), /capfleet_reads 2\n/)
})
