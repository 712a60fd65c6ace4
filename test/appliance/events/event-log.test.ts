// Events survive restarts and crashes of the recorder, in bounded space, and never make their reporter fail.
import assert from 'node:assert/strict'
import { appendFile, mkdir, readFile, rmdir, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { EventLog, type EventLogOptions } from '../../../appliance/events/event-log.ts'
import { type StoredEvent, storedEvents } from '../../../appliance/events/stored-event.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { eventually } from '../../support/eventually.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const log = createLog('test', 'silent')

async function write(store: string, numbers: readonly number[], options?: Partial<EventLogOptions>) {
  await using events = new EventLog(store, { log, ...options })
  for (const number of numbers) events.append('disk-error', { Number: number })
}

const linesOf = async (store: string, name = 'events.jsonl'): Promise<StoredEvent[]> =>
  storedEvents(await readFile(join(store, name)).catch(() => Buffer.alloc(0))).events
const numbersOf = (events: readonly StoredEvent[]): unknown[] => events.map(({ data }) => data.Number)
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

function assertChain(events: readonly StoredEvent[]): void {
  for (const [index, event] of events.entries()) {
    const before = events[index - 1]
    assert.ok(before === undefined || event.after === before.id, `${event.id} follows ${event.after}`)
    assert.ok(event.id > event.after)
  }
}

test('ids ascend over restarts, and each event names the one before', async () => {
  await using folder = await tempFolder()
  for (const first of [0, 3, 6]) await write(folder.path, range(first, first + 3))
  const events = await linesOf(folder.path)
  assert.deepEqual(numbersOf(events), range(0, 9))
  assert.equal(events[0]?.after, 0)
  assertChain(events)
  assert.match(String(events[0]?.data.TS), /^\d{19}$/)
  assert.equal(events[0]?.data.Kind, 'disk-error')
})

test('whatever a crash leaves of the last line, whole lines stay and new ones follow', async () => {
  const random = seededRandom()
  for (let round = 0; round < 25; round++) {
    await using folder = await tempFolder()
    await write(folder.path, range(0, 4))
    const path = join(folder.path, 'events.jsonl')
    await truncate(path, random.integer(0, (await stat(path)).size))
    const kept = await linesOf(folder.path)
    await write(folder.path, [100])
    const events = await linesOf(folder.path)
    assert.deepEqual(numbersOf(events), [...numbersOf(kept), 100], `seed ${random.seed}`)
    assertChain(events)
    assert.equal((await readFile(path)).lastIndexOf('\n'), (await stat(path)).size - 1)
  }
})

test('two files bound the space, and together hold the newest events', async () => {
  await using folder = await tempFolder()
  await write(folder.path, range(0, 500), { fileBytes: 4_096 })
  const [older, newest] = [await linesOf(folder.path, 'events.1.jsonl'), await linesOf(folder.path)]
  const events = [...older, ...newest]
  assertChain(events)
  assert.deepEqual(numbersOf(events), range(500 - events.length, 500))
  assert.ok(older.length > 20 && events.length < 120)
  const longest = 200
  for (const name of ['events.jsonl', 'events.1.jsonl'])
    assert.ok((await stat(join(folder.path, name))).size < 4_096 + longest)
})

test('a bad line in the middle hides no other line', async () => {
  await using folder = await tempFolder()
  await write(folder.path, [1])
  await appendFile(join(folder.path, 'events.jsonl'), 'not JSON\n{"id":"x"}\n')
  await write(folder.path, [2])
  const events = await linesOf(folder.path)
  assert.deepEqual(numbersOf(events), [1, 2])
  assertChain(events)
})

test('a disk that accepts nothing causes no failure; later the newest events are written, with the loss visible', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'events.jsonl')
  await mkdir(path)
  await using events = new EventLog(folder.path, { log })
  for (const number of range(0, 1_500)) events.append('disk-error', { Number: number })
  await rmdir(path)
  await eventually(async () => (await linesOf(folder.path)).length === 1_000, {
    message: 'the events that waited are written',
  })
  const [first, ...rest] = await linesOf(folder.path)
  assert.deepEqual(numbersOf(rest), range(501, 1_500))
  assert.equal(first?.after, 500)
  assertChain(rest)
})
