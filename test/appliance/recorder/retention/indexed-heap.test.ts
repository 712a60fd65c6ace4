import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IndexedHeap } from '../../../../appliance/recorder/retention/indexed-heap.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

interface Item {
  readonly id: number
  order: number
}

const random = seededRandom()
test(`the first item is the smallest after any changes (SEED=${random.seed})`, () => {
  const comesBefore = (a: Item, b: Item): boolean => (a.order === b.order ? a.id < b.id : a.order < b.order)
  const heap = new IndexedHeap<Item>(comesBefore)
  const held: Item[] = []
  for (let id = 0; id < 3_000; id++) {
    const kind = held.length === 0 ? 0 : random.integer(0, 3)
    if (kind < 2) {
      const item = { id, order: random.integer(0, 50) }
      held.push(item)
      heap.put(item)
    } else {
      const place = random.integer(0, held.length - 1)
      const [item] = held.splice(place, 1) as [Item]
      if (kind === 2) heap.delete(item)
      else {
        item.order = random.integer(0, 50)
        held.push(item)
        heap.put(item)
      }
    }
    assert.equal(heap.first, held.toSorted((a, b) => (comesBefore(a, b) ? -1 : 1))[0])
  }
})

test('an item that is not held is no reason to fail', () => {
  const heap = new IndexedHeap<number>((a, b) => a < b)
  heap.put(5)
  heap.delete(7)
  assert.equal(heap.first, 5)
  heap.delete(5)
  assert.equal(heap.first, undefined)
})
