// One signal that joins several, and the memory that many of them leave behind.
import assert from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { JoinedSignal } from '../../../../src/shared/base/joined-signal.ts'
import { OWN_LOOPBACK } from '../../../support/network/own-loopback.ts'

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

test('does not abort before what has arrived in time is read, however late the event loop is', async () => {
  const server = createServer()
  await once(server.listen(0, OWN_LOOPBACK), 'listening')
  const accepted = once(server, 'connection')
  const client = connect((server.address() as AddressInfo).port, OWN_LOOPBACK)
  const [peer] = (await accepted) as [Socket]
  const seen: string[] = []
  const ended = Promise.withResolvers<void>()
  const timeoutMs = 20
  using joined = new JoinedSignal([], timeoutMs)
  joined.signal.addEventListener('abort', () => {
    seen.push('aborted')
    ended.resolve()
  })
  client.once('data', () => {
    seen.push('data')
    ended.resolve()
  })
  peer.write('in time')
  const lateMs = performance.now() + 2 * timeoutMs
  while (performance.now() < lateMs);
  await ended.promise
  assert.deepEqual(seen, ['data'])
  client.destroy()
  peer.destroy()
  server.close()
})

test('a disposed one has let go of its sources and its time, and aborts no more', () => {
  const source = new AbortController()
  const joined = new JoinedSignal([source.signal], 60_000)
  joined[Symbol.dispose]()
  source.abort()
  assert.equal(joined.signal.aborted, false)
  assert.equal(getEventListeners(source.signal, 'abort').length, 0)
})
