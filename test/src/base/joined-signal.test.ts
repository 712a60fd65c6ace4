// One signal of several, and what is left of many of them.
import assert from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { test } from 'node:test'
import { JoinedSignal } from '../../../src/base/joined-signal.ts'

test('aborts with the first source and its reason, and lets go of the others', () => {
  const [one, other] = [new AbortController(), new AbortController()]
  const joined = new JoinedSignal([one.signal, other.signal], 60_000)
  assert.equal(joined.signal.aborted, false)
  other.abort('the other')
  one.abort('too late')
  assert.equal(joined.signal.reason, 'the other')
  assert.equal(getEventListeners(one.signal, 'abort').length, 0)
})

test('is aborted from the beginning when a source is', () => {
  const joined = new JoinedSignal([new AbortController().signal, AbortSignal.abort('before')], 60_000)
  assert.equal(joined.signal.reason, 'before')
  assert.equal(new JoinedSignal([], 0).signal.reason.name, 'TimeoutError')
})

test('aborts after its time', async () => {
  const joined = new JoinedSignal([new AbortController().signal], 10)
  await once(joined.signal, 'abort')
  assert.equal(joined.signal.reason.name, 'TimeoutError')
})

test('a disposed one has let go of its sources and its time, and aborts no more', () => {
  const source = new AbortController()
  const joined = new JoinedSignal([source.signal], 60_000)
  joined[Symbol.dispose]()
  source.abort()
  assert.equal(joined.signal.aborted, false)
  assert.equal(getEventListeners(source.signal, 'abort').length, 0)
})
