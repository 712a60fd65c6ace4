// Which of the fleet's events one client gets, and how it learns about the events that it does not get.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventReader } from '../../../../../src/gateway/fleet/events/event-reader.ts'

const nothing = () => undefined
const reader = () =>
  new EventReader({ wants: () => true, takesOld: false, onNews: nothing, onLeave: nothing })

test('a client that does not read is informed how many events it has missed, in their place', () => {
  const slow = reader()
  let missed = 0
  for (let number = 0; number < 2_500; number++) missed += slow.push(`event ${number}`)
  assert.equal(missed, 500)
  assert.equal(slow.next(), 'event: gap\ndata: {"device":null,"missed":500}\n\n')
  assert.equal(slow.next(), 'event 500')
  slow.push('event 2500')
  const rest = Array.from({ length: 2_000 }, () => slow.next())
  assert.equal(rest.at(-1), 'event 2500')
  assert.equal(slow.next(), undefined)
})
