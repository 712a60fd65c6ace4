import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LiveLimit } from '../../../../src/shared/http/live-limit.ts'

const caller = (user: string, label = '') => ({ user, id: `${user}/${label}` })
const settings = { clientsMax: 8, callerClientsMax: 2 }
const exhausted = { code: 'event-streams-exhausted' }

test('a caller has a limited number of places, until one is released', () => {
  const limit = new LiveLimit(settings)
  const [first] = [limit.take(caller('ann')), limit.take(caller('ann'))]
  assert.throws(() => limit.take(caller('ann')), { ...exhausted, message: /2 of your clients/ })
  limit.take(caller('bob'))
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  limit.take(caller('ann'))
  assert.equal(limit.used, 3)
})

test('callers of one gateway have half of the places together', () => {
  const limit = new LiveLimit(settings)
  for (const label of ['a', 'b', 'c', 'd']) limit.take(caller('gateway', label))
  assert.throws(() => limit.take(caller('gateway', 'e')), {
    ...exhausted,
    message: /4 clients under this user/,
  })
  limit.take(caller('ann'))
})

test('no one gets more places than there are', () => {
  const limit = new LiveLimit(settings)
  for (let i = 0; i < 8; i++) limit.take(caller(`user ${i}`))
  assert.throws(() => limit.take(caller('ann')), { ...exhausted, message: /8 clients follow/ })
})
