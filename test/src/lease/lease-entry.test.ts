import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LeaseEntry } from '../../../src/lease/lease-entry.ts'
import { shuttingDown } from '../../../src/lease/lease-failure.ts'

const SIGNAL = new AbortController().signal

function entry(): LeaseEntry {
  const request = {
    id: 'r1',
    devices: ['a'],
    class: 'interactive',
    user: 'ann',
    signal: SIGNAL,
    waitMs: 0,
  } as const
  return new LeaseEntry(request, 1)
}

test('a wake before the wait is not lost, and only the first one counts', async () => {
  const [granted, failed] = [entry(), entry()]
  granted.wake()
  granted.wake(shuttingDown())
  await granted.woken()
  failed.wake(shuttingDown())
  failed.wake()
  await assert.rejects(failed.woken(), { code: 'draining' })
})

test('a wake during the wait ends it, and only the first one counts', async () => {
  const [granted, failed] = [entry(), entry()]
  const [grant, failure] = [granted.woken(), failed.woken()]
  granted.wake()
  granted.wake(shuttingDown())
  failed.wake(shuttingDown())
  failed.wake()
  await grant
  await assert.rejects(failure, { code: 'draining' })
})

test('what waits again, in a later turn, needs another wake', async () => {
  const one = entry()
  one.wake()
  one.state = 'held'
  one.rewait(2)
  assert.deepEqual([one.turn, one.state, one.opened], [2, 'waiting', false])
  let isWoken = false
  const woken = one.woken().then(() => {
    isWoken = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(isWoken, false)
  one.wake()
  await woken
})
