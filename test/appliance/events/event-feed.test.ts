// The reader of the event log sees each event once and in order, across changes of files and while they are written.
import assert from 'node:assert/strict'
import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { EventCursor } from '../../../appliance/events/event-cursor.ts'
import { EventFeed } from '../../../appliance/events/event-feed.ts'
import { EventLog } from '../../../appliance/events/event-log.ts'
import type { StoredEvent } from '../../../appliance/events/stored-event.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { eventually } from '../../support/eventually.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const log = createLog('test', 'silent')
const feedOf = (storePath: string, seen: StoredEvent[] = []): Promise<EventFeed> =>
  EventFeed.open({ storePath, log, onEvent: (event) => seen.push(event) })
const numberOf = ({ data }: StoredEvent): unknown => data.Number

function allAfter(feed: EventFeed, id: number): StoredEvent[] {
  const events: StoredEvent[] = []
  for (let next = feed.firstAfter(id); next !== undefined; next = feed.firstAfter(next.id)) events.push(next)
  return events
}

test('each event comes once and in order, however the files change meanwhile', async () => {
  const random = seededRandom()
  await using folder = await tempFolder()
  const seen: StoredEvent[] = []
  using feed = await feedOf(folder.path, seen)
  await using events = new EventLog(folder.path, { log, fileBytes: 2_000 })
  let number = 0
  while (number < 1_000) {
    // A file holds some 15 events; two changes of files between two reads would lose some.
    for (let burst = random.integer(1, 12); burst > 0; burst--) {
      events.append('disk-error', { Number: number })
      number += 1
    }
    await eventually(() => seen.length === number, { message: `${number}, seed ${random.seed}` })
  }
  assert.deepEqual(seen.map(numberOf), [...Array(number).keys()])
  const kept = allAfter(feed, 0)
  assert.ok(kept.length > 15 && kept.length < 60, `${kept.length} are kept`)
  assert.deepEqual(kept, seen.slice(-kept.length))
  assert.equal(feed.newestId, seen.at(-1)?.id)
})

test('a reader that comes later has what both files hold', async () => {
  await using folder = await tempFolder()
  {
    await using events = new EventLog(folder.path, { log, fileBytes: 2_000 })
    for (let number = 0; number < 100; number++) events.append('disk-error', { Number: number })
  }
  const seen: StoredEvent[] = []
  using feed = await feedOf(folder.path, seen)
  const kept = allAfter(feed, 0)
  assert.ok(kept.length > 15)
  assert.deepEqual(kept.map(numberOf), [...Array(100).keys()].slice(-kept.length))
  assert.deepEqual(seen, [], 'what was there before is no news')
})

test('a store that is made later is found', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const seen: StoredEvent[] = []
  using _feed = await feedOf(store, seen)
  await mkdir(store)
  await using events = new EventLog(store, { log })
  events.append('store-full', {})
  await eventually(() => seen.length === 1, { message: 'the first event' })
})

test('half a line is no event until the rest is there', async () => {
  await using folder = await tempFolder()
  using feed = await feedOf(folder.path)
  const path = join(folder.path, 'events.jsonl')
  const line = JSON.stringify({ id: 7, after: 0, data: { TS: '1', Kind: 'store-full' } })
  await appendFile(path, line.slice(0, 20))
  await feed.refresh()
  assert.equal(feed.newestId, 0)
  await appendFile(path, `${line.slice(20)}\n`)
  await feed.refresh()
  assert.equal(feed.newestId, 7)
})

test('a client is notified of a gap exactly if events that it has not seen are gone', () => {
  const random = seededRandom()
  for (let round = 0; round < 2_000; round++) {
    const history: StoredEvent[] = []
    for (let left = random.integer(1, 12); left > 0; left--) {
      const after = history.at(-1)?.id ?? 0
      history.push({ id: after + random.integer(1, 3), after, data: { TS: '1', Kind: 'disk-error' } })
    }
    const kept = history.slice(random.integer(0, history.length - 1))
    const seenCount = random.integer(0, history.length)
    const seenId = history[seenCount - 1]?.id ?? 0
    const texts = textsOf(kept, seenId)
    const missed = history.slice(seenCount)
    const there = missed.filter((event) => kept.includes(event))
    const message = `seed ${random.seed} round ${round}`
    assert.deepEqual(
      texts.map((text) => Number(/^id: (\d+)$/m.exec(text)?.[1])),
      there.map(({ id }) => id),
      message,
    )
    const gaps = texts.map((text) => /^event: gap$/m.test(text))
    assert.deepEqual(
      gaps,
      there.map((_, index) => index === 0 && there.length < missed.length),
      message,
    )
  }
})

test('an id that this store never gave is a gap too, and keeps nothing back', () => {
  const event = (id: number, after: number): StoredEvent => ({
    id,
    after,
    data: { TS: '5', Kind: 'store-full' },
  })
  const [text] = textsOf([event(10, 0), event(20, 10)], 15)
  assert.equal(
    text,
    'event: gap\ndata: {"After":"15","Next":"20","TS":"5"}\n\nid: 20\nevent: store-full\ndata: {"TS":"5","Kind":"store-full"}\n\n',
  )
  const kept = [event(10, 0)]
  const cursor = new EventCursor(feedOver(kept), 1_000)
  assert.equal(cursor.next(), undefined)
  kept.push(event(20, 10))
  assert.match(cursor.next() ?? '', /^event: gap\n.*"After":"1000","Next":"20"/)
})

function feedOver(kept: readonly StoredEvent[]): Pick<EventFeed, 'newestId' | 'firstAfter'> {
  return {
    get newestId() {
      return kept.at(-1)?.id ?? 0
    },
    firstAfter: (id) => kept.find((event) => event.id > id),
  }
}

function textsOf(kept: readonly StoredEvent[], seenId: number): string[] {
  const cursor = new EventCursor(feedOver(kept), seenId)
  const texts: string[] = []
  for (let text = cursor.next(); text !== undefined; text = cursor.next()) texts.push(text)
  return texts
}
