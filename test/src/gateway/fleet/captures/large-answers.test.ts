import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LargeAnswers } from '../../../../../src/gateway/fleet/captures/large-answers.ts'

test('a limited number are read at once, one per device, in the order of arrival', async () => {
  const answers = new LargeAnswers(2)
  const { signal } = new AbortController()
  const order: string[] = []
  const begin = async (device: string, name: string) => {
    const place = await answers.begin(device, signal)
    order.push(name)
    return place
  }
  const a1 = await begin('a', 'a1')
  const a2 = begin('a', 'a2')
  const b1 = await begin('b', 'b1')
  const c1 = begin('c', 'c1')
  assert.deepEqual([order, answers.reading, answers.waiting], [['a1', 'b1'], 2, 2])
  b1[Symbol.dispose]()
  const c = await c1
  assert.deepEqual(order, ['a1', 'b1', 'c1'], 'a second one of the first device does not keep others out')
  a1[Symbol.dispose]()
  c[Symbol.dispose]()
  ;(await a2)[Symbol.dispose]()
  assert.deepEqual([answers.reading, answers.waiting], [0, 0])
})

test('a caller that does not wait any more has no turn', async () => {
  const answers = new LargeAnswers(1)
  const place = await answers.begin('a', new AbortController().signal)
  const leaving = new AbortController()
  const left = answers.begin('b', leaving.signal)
  leaving.abort(new Error('gone'))
  await assert.rejects(left, /gone/)
  await assert.rejects(answers.begin('b', leaving.signal), /gone/)
  place[Symbol.dispose]()
  assert.deepEqual([answers.reading, answers.waiting], [0, 0])
})
