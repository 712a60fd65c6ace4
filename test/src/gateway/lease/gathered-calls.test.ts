import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GatheredCalls } from '../../../../src/gateway/lease/gathered-calls.ts'

interface Call {
  readonly asks: readonly number[]
  readonly settle: PromiseWithResolvers<readonly number[]>
}

function gather(most: number) {
  const calls: Call[] = []
  const gathered = new GatheredCalls<number, number>((asks) => {
    const settle = Promise.withResolvers<readonly number[]>()
    calls.push({ asks, settle })
    return settle.promise
  }, most)
  const answer = (index: number) => {
    const call = calls[index]
    call?.settle.resolve(call.asks.map((ask) => ask * 10))
  }
  return { gathered, calls, answer, asked: () => calls.map(({ asks }) => asks) }
}

test('the first goes at once, those that come meanwhile go together, each gets its own answer', async () => {
  const { gathered, answer, asked } = gather(64)
  const answers = [1, 2, 3].map((ask) => gathered.ask(ask))
  assert.deepEqual(asked(), [[1]])
  answer(0)
  assert.equal(await answers[0], 10)
  assert.deepEqual(asked(), [[1], [2, 3]])
  answer(1)
  assert.deepEqual(await Promise.all(answers), [10, 20, 30])
})

test('a full call does not wait for the one before, and no call is longer than allowed', async () => {
  const { gathered, answer, asked } = gather(2)
  const answers = [1, 2, 3, 4].map((ask) => gathered.ask(ask))
  assert.deepEqual(asked(), [[1], [2, 3]])
  answer(0)
  await answers[0]
  // The second call is still in progress.
  assert.deepEqual(asked(), [[1], [2, 3]])
  answer(1)
  await answers[2]
  assert.deepEqual(asked(), [[1], [2, 3], [4]])
  answer(2)
  assert.equal(await answers[3], 40)
})

test('a call that fails fails what it asked for, and the next is made', async () => {
  const { gathered, calls, answer, asked } = gather(64)
  const answers = [1, 2].map((ask) => gathered.ask(ask))
  calls[0]?.settle.reject(new Error('away'))
  await assert.rejects(answers[0] as Promise<number>, /away/)
  assert.deepEqual(asked(), [[1], [2]])
  answer(1)
  assert.equal(await answers[1], 20)
})
