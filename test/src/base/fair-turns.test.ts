import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FairTurns } from '../../../src/base/fair-turns.ts'

const STAYS = new AbortController().signal

/** Takes the turns in the order of `callers`; tells who was served, in order. */
async function serveAll(turns: FairTurns, callers: readonly string[]): Promise<string[]> {
  const served: string[] = []
  const first = await turns.take('first', STAYS)
  const waiting = callers.map(async (caller) => {
    using _turn = await turns.take(caller, STAYS)
    served.push(caller)
  })
  first?.[Symbol.dispose]()
  await Promise.all(waiting)
  return served
}

test('who asks for many turns is served in turn with the others', async () => {
  const turns = new FairTurns({ atOnce: 1, waitingMax: 100, waitingPerCallerMax: 100 })
  const served = await serveAll(turns, ['a', 'a', 'a', 'a', 'b', 'c', 'b'])
  assert.deepEqual(served, ['a', 'b', 'c', 'a', 'b', 'a', 'a'])
  assert.equal(turns.waiting, 0)
})

test('no more hold a turn than may at once', async () => {
  const turns = new FairTurns({ atOnce: 2, waitingMax: 100, waitingPerCallerMax: 100 })
  let [held, most] = [0, 0]
  await Promise.all(
    Array.from({ length: 50 }, async (_, at) => {
      using _turn = await turns.take(String(at % 3), STAYS)
      held += 1
      most = Math.max(most, held)
      await new Promise((resolve) => setImmediate(resolve))
      held -= 1
    }),
  )
  assert.equal(most, 2)
})

test('there is no room for more of one caller, or of all, than may wait', async () => {
  const turns = new FairTurns({ atOnce: 1, waitingMax: 3, waitingPerCallerMax: 2 })
  const holder = await turns.take('a', STAYS)
  const waiting = ['a', 'a', 'b'].map((caller) => turns.take(caller, STAYS))
  assert.equal(turns.take('a', STAYS), undefined, 'one caller')
  assert.equal(turns.take('c', STAYS), undefined, 'all')
  assert.equal(turns.waiting, 3)
  holder?.[Symbol.dispose]()
  await Promise.all(waiting.map(async (turn) => (await turn)?.[Symbol.dispose]()))
  assert.ok(turns.take('c', STAYS))
})

test('who leaves gives up the place, and disposing a turn twice frees it once', async () => {
  const turns = new FairTurns({ atOnce: 1, waitingMax: 2, waitingPerCallerMax: 2 })
  const holder = await turns.take('a', STAYS)
  const leaving = new AbortController()
  const left = turns.take('b', leaving.signal)
  const stays = turns.take('c', STAYS)
  leaving.abort(new Error('gone'))
  await assert.rejects(left ?? Promise.resolve(), /gone/)
  assert.equal(turns.waiting, 1)
  holder?.[Symbol.dispose]()
  holder?.[Symbol.dispose]()
  const next = await stays
  const last = turns.take('d', STAYS)
  assert.equal(turns.waiting, 1, 'the turn of c is the only one')
  next?.[Symbol.dispose]()
  assert.ok(await last)
  await assert.rejects(turns.take('e', leaving.signal) ?? Promise.resolve(), /gone/)
})
