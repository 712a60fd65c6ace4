import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mock, test } from 'node:test'
import { LeaseEntry } from '../../../../src/gateway/lease/lease-entry.ts'
import { shuttingDown } from '../../../../src/gateway/lease/lease-failure.ts'

const SIGNAL = new AbortController().signal
const WAIT = { signal: SIGNAL, waitMs: 60_000 }
const ignore = () => undefined

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
  await granted.woken(WAIT, ignore)
  failed.wake(shuttingDown())
  failed.wake()
  await assert.rejects(failed.woken(WAIT, ignore), { code: 'draining' })
})

test('a wake during the wait ends it, and only the first one counts', async () => {
  const [granted, failed] = [entry(), entry()]
  const [grant, failure] = [granted.woken(WAIT, ignore), failed.woken(WAIT, ignore)]
  granted.wake()
  granted.wake(shuttingDown())
  failed.wake(shuttingDown())
  failed.wake()
  await grant
  await assert.rejects(failure, { code: 'draining' })
})

test('what waits again, in a later attempt, needs another wake', async () => {
  const one = entry()
  one.wake()
  one.state = 'held'
  one.rewait(2)
  assert.deepEqual([one.attempt, one.state, one.opened], [2, 'waiting', false])
  let isWoken = false
  const woken = one.woken(WAIT, ignore).then(() => {
    isWoken = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(isWoken, false)
  one.wake()
  await woken
})

test('the abort signal of a waiter, or its timeout, ends the wait and leaves nothing over', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const left = new AbortController()
  const wait = { signal: left.signal, waitMs: 1_000 }
  const [granted, timed, aborted, late] = [entry(), entry(), entry(), entry()]
  const ended: LeaseEntry[] = []
  const onTimeout = (one: LeaseEntry) => {
    ended.push(one)
    one.wake(shuttingDown())
  }
  const grant = granted.woken(wait, onTimeout)
  granted.wake()
  await grant
  const failure = timed.woken(wait, onTimeout)
  mock.timers.tick(1_000)
  await assert.rejects(failure, { code: 'draining' })
  assert.deepEqual(ended, [timed])
  const abort = aborted.woken(wait, onTimeout)
  assert.equal(getEventListeners(left.signal, 'abort').length, 1)
  left.abort(new Error('left'))
  await assert.rejects(abort, /left/)
  await assert.rejects(late.woken(wait, onTimeout), /left/)
  assert.equal(getEventListeners(left.signal, 'abort').length, 0)
  mock.timers.tick(1_000)
  assert.deepEqual(ended, [timed])
  mock.timers.reset()
})
