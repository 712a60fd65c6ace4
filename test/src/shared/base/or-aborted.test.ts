import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { orAborted } from '../../../../src/shared/base/or-aborted.ts'

test('settles as the value does, and listens to the signal no longer', async () => {
  const { signal } = new AbortController()
  assert.equal(await orAborted(Promise.resolve(7), signal), 7)
  await assert.rejects(orAborted(Promise.reject(new Error('broken')), signal), /broken/)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
})

test('rejects with the reason of the signal, also of one that is aborted already', async () => {
  const reason = new Error('gone')
  const ending = new AbortController()
  const waiting = orAborted(new Promise(() => undefined), ending.signal)
  ending.abort(reason)
  await assert.rejects(waiting, reason)
  await assert.rejects(orAborted(new Promise(() => undefined), ending.signal), reason)
})
