import assert from 'node:assert/strict'
import { test } from 'node:test'
import { interleaved } from '../../../../../src/gateway/fetch/lines/interleaved.ts'
import { eventually } from '../../../../support/eventually.ts'

const KEPT = { heldMax: 4, mayDrop: () => false }

test('yields everything of all sources, that of each in its order', async () => {
  const source = async function* (name: string, count: number) {
    for (let index = 0; index < count; index += 1) yield `${name}${index}`
  }
  const all: string[] = []
  for await (const items of interleaved([source('a', 100), source('b', 3), source('c', 0)], KEPT))
    all.push(...items)
  for (const [name, count] of [
    ['a', 100],
    ['b', 3],
  ] as const)
    assert.deepEqual(
      all.filter((item) => item.startsWith(name)),
      Array.from({ length: count }, (_, index) => `${name}${index}`),
    )
  assert.equal(all.length, 103)
})

test('a source that has nothing yet does not hold the others', async () => {
  const gate = Promise.withResolvers<void>()
  const late = async function* () {
    await gate.promise
    yield 'late'
  }
  const early = async function* () {
    yield 'early'
  }
  const items = interleaved([late(), early()], KEPT)
  assert.deepEqual((await items.next()).value, ['early'])
  gate.resolve()
  assert.deepEqual((await items.next()).value, ['late'])
  assert.equal((await items.next()).done, true)
})

test('sources wait for a reader that reads slowly, and are ended when it leaves', async () => {
  let [made, ended] = [0, 0]
  const source = async function* () {
    try {
      for (;;) yield made++
    } finally {
      ended += 1
    }
  }
  const items = interleaved([source(), source()], { heldMax: 8, mayDrop: () => false })
  await items.next()
  await eventually(() => made >= 8, { message: 'the sources fill what is held' })
  for (let turn = 0; turn < 100; turn += 1) await Promise.resolve()
  assert.ok(made < 32, String(made))
  await items.return(undefined)
  assert.equal(ended, 2)
})

test('a source does not wait with what may be dropped', async () => {
  const finished = Promise.withResolvers<void>()
  const optional = async function* () {
    for (let count = 0; count < 100; count += 1) yield 'optional'
    finished.resolve()
    yield 'last'
  }
  const endless = async function* () {
    for (;;) yield 'kept'
  }
  const items = interleaved([endless(), optional()], { heldMax: 4, mayDrop: (item) => item === 'optional' })
  await items.next()
  await finished.promise
  const rest: string[] = []
  while (!rest.includes('last')) rest.push(...((await items.next()).value as readonly string[]))
  assert.ok(rest.filter((item) => item === 'optional').length <= 8, String(rest.length))
  await items.return(undefined)
})
