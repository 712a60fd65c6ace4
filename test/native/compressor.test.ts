import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Compressor } from '../../native/compressor.ts'

test('a compressor that is closed when a part is ready is not asked for what there is', async () => {
  const compressor = new Compressor('fast')
  // From here timers come next, and what other threads say after them.
  await setImmediate()
  const part = compressor.next()
  compressor.end()
  // Meanwhile a thread has the part ready, and the timer that asks for it becomes due.
  const untilMs = performance.now() + 300
  while (performance.now() < untilMs);
  compressor.close()
  await part
  await assert.rejects(compressor.next(), { name: 'AbortError' })
})
