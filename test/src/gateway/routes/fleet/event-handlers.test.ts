// /v1/events: events of all devices, for any number of clients, with one connection per device.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { EventStream, type ServerSentEvent } from '../../../../support/clients/event-stream.ts'
import { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { fleetPcap } from '../../../../support/devices/fake-fleet.ts'
import { RawDevice } from '../../../../support/devices/raw-device.ts'
import { eventually } from '../../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../../support/http-get.ts'
import { type SmallFleet, startSmallFleet } from '../../../../support/processes/small-fleet.ts'
import type { TempAppliance } from '../../../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'

async function follow(
  gateway: TempGateway,
  query = '',
  headers: Readonly<Record<string, string>> = {},
): Promise<EventStream> {
  const answer = await httpOpen(`${gateway.url}/v1/events${query}`, {
    headers: { ...gateway.as.viewer, ...headers },
  })
  assert.equal(answer.response.statusCode, 200)
  return new EventStream(answer)
}

/** The next event of this kind; earlier events are skipped. */
async function nextOf(stream: EventStream, kind: string): Promise<ServerSentEvent> {
  for (;;) {
    const event = await stream.next()
    assert.ok(event, `the stream ended before ${kind}`)
    if (event.data.kind === kind || event.event === kind) return event
  }
}

const figure = async (url: string, name: string) => {
  const { body } = await httpGet(`${url}/metrics`)
  return new RegExp(`^capfleet_${name} (\\d+)$`, 'm').exec(body.toString())?.[1]
}

async function restartRecorder(appliance: TempAppliance): Promise<void> {
  await appliance.stopRecorder()
  await appliance.startRecorder()
}

describe('the events of two appliances', () => {
  let fleet: SmallFleet
  let east: TempAppliance
  before(async () => {
    fleet = await startSmallFleet([{ name: 'easterner', role: 'viewer', devices: 'east' }])
    const [first] = fleet.appliances
    assert.ok(first)
    east = first
  })
  after(() => fleet[Symbol.asyncDispose]())

  /** Resolves when each appliance has this many clients. */
  const listenedTo = (counts: readonly string[]) =>
    eventually(
      async () => {
        const clients = await Promise.all(fleet.appliances.map(({ url }) => figure(url, 'live_clients')))
        return JSON.stringify(clients) === JSON.stringify(counts)
      },
      { message: `clients: ${counts.join(', ')}` },
    )

  test('a client that chooses a device has that one alone listened to', async () => {
    using stream = await follow(fleet.gateway, '?Device=east')
    assert.deepEqual((await stream.next())?.data, { devices: 1, down: [], silent: [] })
    await listenedTo(['1', '0'])
  })

  test('what is kept comes first, then what happens, with its device; each device has one listener', async () => {
    using all = await follow(fleet.gateway, '?LastEventID=0')
    using now = await follow(fleet.gateway)
    using bounded = await follow(fleet.gateway, '', fleet.gateway.basic('easterner'))
    assert.deepEqual((await now.next())?.data, { devices: 2, down: [], silent: [] })
    assert.deepEqual((await bounded.next())?.data, { devices: 1, down: [], silent: [] })
    const old = [await nextOf(all, 'recorder-started'), await nextOf(all, 'recorder-started')]
    assert.deepEqual(old.map(({ data }) => data.device).sort(), ['east', 'west'])
    await listenedTo(['1', '1'])

    await restartRecorder(fleet.appliances[1] as TempAppliance)
    const west = await nextOf(now, 'recorder-started')
    assert.equal(west.data.device, 'west', 'a client of now hears nothing of before')
    await restartRecorder(east)
    const heard = [await nextOf(now, 'recorder-started'), await nextOf(bounded, 'recorder-started')]
    assert.deepEqual(heard[0], heard[1], 'bounds let nothing of west through, and change nothing of east')
    const { device, source, kind, atNs, number, told } = heard[0]?.data ?? {}
    assert.deepEqual([device, source, kind], ['east', 'device', 'recorder-started'])
    assert.equal(atNs, (told as { TS: string }).TS)
    assert.match(String(number), /^\d{13}$/)
  })

  test('Last-Event-ID continues after the event, without duplicates or gaps', async () => {
    using stream = await follow(fleet.gateway, '?Device=east&LastEventID=0')
    await stream.next()
    const first = await nextOf(stream, 'recorder-started')
    const second = await nextOf(stream, 'recorder-started')
    using resumed = await follow(fleet.gateway, '?Device=east', { 'last-event-id': first.id })
    assert.equal((await resumed.next())?.event, 'fleet')
    assert.deepEqual(await resumed.next(), second)
  })

  test('the id of another gateway returns what is kept, after a gap', async () => {
    using stream = await follow(fleet.gateway, '?Device=east&LastEventID=0badc0de-7')
    const [, gap, first] = await stream.take(3)
    assert.deepEqual([gap?.event, gap?.data], ['gap', { device: null, missed: null }])
    assert.equal(first?.data.device, 'east')
  })

  test('an invalid id, and a device that the caller may not use, are refused', async () => {
    const status = async (query: string, user = 'viewer') =>
      (await httpGet(`${fleet.gateway.url}/v1/events${query}`, { headers: fleet.gateway.basic(user) })).status
    assert.equal(await status('?LastEventID=x'), 400)
    assert.equal(await status('?Device=west', 'easterner'), 404)
    assert.equal((await httpGet(`${fleet.gateway.url}/v1/events`)).status, 401)
  })

  test('a revoked token gets no more events', async () => {
    const headers = fleet.gateway.as.viewer
    const issued = await httpGet(`${fleet.gateway.url}/v1/tokens`, { method: 'POST', headers })
    const { id, token } = issued.json()
    using stream = await follow(fleet.gateway, '', { authorization: `Bearer ${token}` })
    await stream.next()
    const gone = await httpGet(`${fleet.gateway.url}/v1/tokens/${id}`, { method: 'DELETE', headers })
    assert.ok(gone.status < 300, gone.body.toString())
    while ((await stream.next()) !== undefined);
  })

  test('a gateway that stops ends the stream, and that of its devices', async () => {
    using stream = await follow(fleet.gateway)
    await stream.next()
    await listenedTo(['1', '1'])
    await fleet.gateway.close(0)
    while ((await stream.next()) !== undefined);
    await listenedTo(['0', '0'])
  })
})

describe('the events of devices that fail', () => {
  let redis: TempRedis
  before(async () => {
    redis = await TempRedis.create()
  })
  after(() => redis[Symbol.asyncDispose]())

  test('a device that dies and returns is reported, as well as the gap in its events', async () => {
    await using device = await FakeDevice.start('mute', fleetPcap(0, 1))
    const health = { intervalS: 0.5, failuresMax: 1_000_000 }
    await using gateway = await startTempGateway([device], redis.url, { health })
    using stream = await follow(gateway)
    // It has no path for events.
    const silent = await nextOf(stream, 'events-silent')
    assert.equal((silent.data.told as { code: string }).code, 'not-found')
    const { port } = device
    await device.kill()
    const down = await nextOf(stream, 'device-down')
    assert.deepEqual([down.data.device, down.data.source, down.data.number], ['mute', 'gateway', null])
    assert.equal((down.data.told as { code: string }).code, 'device-unreachable')
    using second = await follow(gateway)
    assert.deepEqual((await second.next())?.data, {
      devices: 1,
      down: ['mute'],
      silent: [{ device: 'mute', code: 'not-found' }],
    })
    await using _again = await FakeDevice.start('mute', fleetPcap(0, 1), port)
    assert.equal((await nextOf(stream, 'device-up')).data.device, 'mute')
  })

  test('what a lying device reports stays within one event', async () => {
    await using liar = await RawDevice.start()
    const events = [
      'id: 1\u0007\nevent: a\u0000b\ndata: {"TS":"1x","text":"<b>",\ndata: "large":9007199254740993}\n\n',
      'data: no json\r\rdata: {"x":1}\n\n',
      `data: ${'['.repeat(100)}${']'.repeat(100)}\n\n`,
    ].join('')
    liar.answer = {
      writes: [
        Buffer.from(
          `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n${events}`,
        ),
      ],
      end: 'hang',
    }
    const config = { name: 'liar', url: liar.url, user: 'x', password: { env: 'FAKE_DEVICE_PASSWORD' } }
    const settings = { events: { callerClientsMax: 1 } }
    await using gateway = await startTempGateway([{ config, password: 'x' }], redis.url, settings)
    using stream = await follow(gateway, '?LastEventID=0')
    const shown = async () => {
      const { data } = await nextOf(stream, 'happened')
      return data.source === 'gateway' ? undefined : [data.kind, data.number, data.told]
    }
    const told: unknown[] = []
    while (told.length < 3) {
      const one = await shown()
      if (one !== undefined) told.push(one)
    }
    const large = { TS: '1x', text: '<b>', large: Number('9007199254740993') }
    assert.deepEqual(told[0], ['a b', '1', large])
    assert.deepEqual(told[1], ['unknown', null, 'no json  data: {"x":1}'])
    assert.deepEqual(told[2], ['unknown', null, '['.repeat(100) + ']'.repeat(100)])

    const refused = await httpGet(`${gateway.url}/v1/events`, { headers: gateway.as.viewer })
    assert.deepEqual([refused.status, refused.json().code], [503, 'event-streams-exhausted'])
    assert.ok(refused.headers['retry-after'])
  })
})
