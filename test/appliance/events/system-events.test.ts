// The events of a device as they happen, and its telemetry, as a client sees them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach, describe, test } from 'node:test'
import { EventLog } from '../../../appliance/events/event-log.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { EventStream, type ServerSentEvent } from '../../support/clients/event-stream.ts'
import { STATUS_MEMBERS } from '../../support/devices/status-members.ts'
import { eventually } from '../../support/eventually.ts'
import type { HttpGetOptions } from '../../support/http-get.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const EVENTS = '/api/v1/system/events'
const TELEMETRY = '/api/v1/system/telemetry'
const CLIENTS_MAX = 40
const GROUPS = Object.keys(STATUS_MEMBERS)

let appliance: TempAppliance
/** Replaces the recorder, which is stopped: a store has only one writer of events. */
let events: EventLog
let nextNumber = 0

before(async () => {
  appliance = await startTempAppliance({
    config: { telemetry: { intervalMs: 100 }, events: { clientsMax: CLIENTS_MAX, callerClientsMax: 20 } },
  })
  await appliance.stopRecorder()
})
after(() => appliance[Symbol.asyncDispose]())

function happen(count: number): number[] {
  return Array.from({ length: count }, () => {
    events.append('disk-error', { Number: nextNumber })
    nextNumber += 1
    return nextNumber - 1
  })
}

async function listen(query = '', options: HttpGetOptions = {}): Promise<EventStream> {
  const answer = await appliance.open(`${EVENTS}${query}`, options)
  assert.equal(answer.response.statusCode, 200)
  return new EventStream(answer)
}

const numbersOf = (taken: readonly ServerSentEvent[]): unknown[] => taken.map(({ data }) => data.Number)
const liveClients = async (): Promise<number> => {
  const { body } = await appliance.get('/metrics')
  return Number(/^capfleet_live_clients (\d+)$/m.exec(body.toString())?.[1])
}

describe('events', () => {
  before(() => {
    events = new EventLog(appliance.storePath, { log: createLog('test', 'silent') })
  })
  after(() => events[Symbol.asyncDispose]())
  beforeEach(() => eventually(async () => (await liveClients()) === 0, { message: 'all clients have gone' }))

  test('come with id, kind, time and fields, to a client that listens', async () => {
    using stream = await listen()
    const [number] = happen(1)
    const [event] = await stream.take(1)
    assert.ok(event)
    const { TS, ...data } = event.data
    assert.deepEqual([event.event, data], ['disk-error', { Kind: 'disk-error', Number: number }])
    assert.match(event.id, /^\d{13}$/)
    assert.match(String(TS), /^\d{19}$/)
    assert.deepEqual(stream.others, ['retry: 2000\n: events of capfleet'])
  })

  test('are resumed by header or parameter without gap and without duplicate', async () => {
    using first = await listen()
    const expected = happen(20)
    const seen = await first.take(20)
    assert.deepEqual(numbersOf(seen), expected)
    const lastId = seen[11]?.id ?? ''
    for (const [query, headers] of [
      ['', { 'last-event-id': lastId }],
      [`?LastEventID=${lastId}`, {}],
      ['?LastEventID=1', { 'last-event-id': lastId }],
    ] as const) {
      using stream = await listen(query, { headers })
      const more = happen(2)
      const taken = await stream.take(expected.length - 12 + more.length)
      assert.deepEqual(numbersOf(taken), [...expected.slice(12), ...more])
      expected.push(...more)
      assert.ok(taken.every(({ event }) => event === 'disk-error'))
    }
  })

  test('that have aged out are a gap, said once, before what is left', async () => {
    using stream = await listen('?LastEventID=17')
    const [gap, first] = await stream.take(2)
    assert.deepEqual([gap?.event, gap?.id, gap?.data.After], ['gap', '', '17'])
    assert.equal(gap?.data.Next, first?.id)
    using whole = await listen('?LastEventID=0')
    assert.equal((await whole.next())?.event, 'recorder-started')
  })

  test('of a program that lingers reach every client, each once', async () => {
    const streams = await Promise.all(Array.from({ length: 10 }, () => listen()))
    const expected = happen(500)
    for (const stream of streams) {
      assert.deepEqual(numbersOf(await stream.take(500)), expected)
      stream[Symbol.dispose]()
    }
  })

  test('wait for a client that does not read; what it is too late for is a gap where it was', async () => {
    const { hostname, port } = new URL(appliance.url)
    const slow = createConnection(Number(port), hostname)
    await once(slow, 'connect')
    slow.write(
      `GET ${EVENTS} HTTP/1.0\r\nauthorization: Basic ${btoa(appliance.credentials('full'))}\r\n\r\n`,
    )
    await once(slow, 'readable')
    using quick = await listen()
    // 20 MiB: more than the buffers between two programs and the two files hold together.
    const padding = 'x'.repeat(4_096)
    const count = 5_000
    for (let number = 0; number < count; number++) {
      events.append('disk-error', { Number: number, padding })
      if (number % 500 === 499) await quick.take(500)
    }
    const told = await readToNumber(slow, count - 1)
    const gap = told.indexOf('gap')
    assert.ok(gap > 100 && told.lastIndexOf('gap') === gap, `one gap, after ${gap} events`)
    const before = told.slice(0, gap)
    const behind = told.slice(gap + 1)
    assert.deepEqual(before, [...Array(before.length).keys()])
    assert.deepEqual(behind, [...Array(count).keys()].slice(-behind.length))
    assert.ok(before.length + behind.length < count)
  })

  test('with telemetry bring each group of the status, without id, exactly as there', async () => {
    using stream = await listen('?Telemetry=1')
    const first = await stream.take(GROUPS.length)
    assert.deepEqual(
      first.map(({ event, id, data }) => [event, id, data.subsystem]),
      GROUPS.map((group) => ['telemetry', '', group]),
    )
    const status = (await appliance.get('/api/v1/system/status')).json() as Record<string, object>
    for (const { data } of first) {
      const group = status[String(data.subsystem)] ?? {}
      assert.deepEqual(Object.keys(data), Object.keys(group))
    }
    happen(1)
    const later = await stream.take(2 * GROUPS.length)
    assert.equal(later.filter(({ event }) => event === 'disk-error').length, 1)
  })

  test('are refused beyond the limit with 503, and a client that leaves makes room', async () => {
    const streams = await Promise.all(
      Array.from({ length: CLIENTS_MAX }, (_, i) =>
        listen('', { user: appliance.credentials(i % 2 === 0 ? 'viewer' : 'user') }),
      ),
    )
    for (const path of [EVENTS, TELEMETRY]) {
      const refused = await appliance.get(path)
      assert.deepEqual([refused.status, refused.json().code], [503, 'event-streams-exhausted'])
      assert.equal(refused.headers['retry-after'], '10')
    }
    assert.equal((await appliance.get(EVENTS, { method: 'HEAD' })).status, 200)
    streams.pop()?.[Symbol.dispose]()
    await eventually(async () => (await liveClients()) === CLIENTS_MAX - 1, { message: 'the place is free' })
    using _another = await listen()
    for (const stream of streams) stream[Symbol.dispose]()
  })

  test('are no place where one user keeps the others out', async () => {
    const user = appliance.credentials('viewer')
    const streams = await Promise.all(Array.from({ length: 20 }, () => listen('', { user })))
    const refused = await appliance.get(TELEMETRY, { user })
    assert.deepEqual([refused.status, refused.json().code], [503, 'event-streams-exhausted'])
    assert.match(String(refused.json().detail), /20 of your clients/)
    using _others = await listen('', { user: appliance.credentials('user') })
    for (const stream of streams) stream[Symbol.dispose]()
  })

  test('need a user, as telemetry does, also where the system status needs none', async () => {
    for (const path of [EVENTS, TELEMETRY]) {
      for (const method of ['GET', 'HEAD']) {
        assert.equal((await appliance.get(`${path}?Count=1`, { user: undefined, method })).status, 401, path)
      }
    }
    assert.equal((await appliance.get('/api/v1/system/status', { user: undefined })).status, 200)
    assert.equal(
      (await appliance.get(`${TELEMETRY}?Count=1`, { user: appliance.credentials('viewer') })).status,
      200,
    )
  })

  test('by HEAD are a head only; bad parameters are named', async () => {
    const head = await appliance.get(EVENTS, { method: 'HEAD' })
    assert.deepEqual(
      [head.status, head.headers['content-type'], head.headers['cache-control'], head.body.length],
      [200, 'text/event-stream', 'no-store', 0],
    )
    for (const [query, headers, param] of [
      ['?LastEventID=x', {}, 'LastEventID'],
      ['?Telemetry=maybe', {}, 'Telemetry'],
      ['', { 'last-event-id': '1e5' }, 'Last-Event-ID'],
    ] as const) {
      const answer = await appliance.get(`${EVENTS}${query}`, { headers })
      assert.deepEqual([answer.status, answer.json().param], [400, param])
    }
  })

  test('are counted by kind', async () => {
    const count = async (): Promise<number> => {
      const { body } = await appliance.get('/metrics')
      return Number(/^capfleet_events_total\{kind="store-full"\} (\d+)$/m.exec(body.toString())?.[1])
    }
    assert.equal(await count(), 0)
    events.append('store-full', {})
    await eventually(async () => (await count()) === 1, { message: 'it is counted' })
  })
})

describe('telemetry', () => {
  test('is one line of JSON per group and interval, as often as asked', async () => {
    const answer = await appliance.get(`${TELEMETRY}?Count=3`)
    assert.equal(answer.headers['content-type'], 'application/x-ndjson')
    const lines = answer.body.toString().split('\n')
    assert.equal(lines.pop(), '')
    const names = lines.map((line) => (JSON.parse(line) as { subsystem: string }).subsystem)
    assert.deepEqual(names, [...GROUPS, ...GROUPS, ...GROUPS])
  })

  test('comes at the pace that is asked for', async () => {
    const startedMs = performance.now()
    await appliance.get(`${TELEMETRY}?Count=2&Interval=1`)
    assert.ok(performance.now() - startedMs > 900)
    for (const query of ['Count=0', 'Interval=31', 'Interval=0'])
      assert.equal((await appliance.get(`${TELEMETRY}?${query}`)).status, 400, query)
  })
})

test('the recorder reports its start; an appliance that shuts down disconnects its clients', async () => {
  await using other = await startTempAppliance()
  const stream = new EventStream(await other.open(EVENTS))
  const telemetry = await other.open(TELEMETRY)
  await other.stopRecorder()
  await other.startRecorder()
  const event = await stream.next()
  assert.deepEqual([event?.event, event?.data.pid], ['recorder-started', process.pid])
  await other.closeAppliance(20_000)
  assert.equal(await stream.next(), undefined, 'a clean end: the client comes back')
  assert.match(await text(telemetry.response), /\n$/)
})

/** Numbers of events and "gap", in order, up to the event with this number. */
async function readToNumber(socket: Socket, last: number): Promise<(number | 'gap')[]> {
  const told: (number | 'gap')[] = []
  let rest = ''
  for await (const chunk of socket.setEncoding('utf8')) {
    const blocks = (rest + String(chunk)).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      if (block.startsWith('event: gap')) told.push('gap')
      const number = /"Number":(\d+)/.exec(block)?.[1]
      if (number !== undefined) told.push(Number(number))
    }
    if (told.at(-1) === last) break
  }
  return told
}
