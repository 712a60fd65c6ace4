// A merge whose client is slow releases its streams to waiting requests, and the client loses nothing.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { FetchedDownload } from '../../../../src/gateway/fetch/body/fetch-download.ts'
import { DownloadOutcomes } from '../../../../src/gateway/serve/download-outcomes.ts'
import { watchReader } from '../../../../src/gateway/serve/slow-reader.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { simulatedMerge, simulatedRange } from '../../../support/devices/simulated-capture.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen, type OpenAnswer } from '../../../support/http-get.ts'
import { pause } from '../../../support/pause.ts'
import {
  type SimulatedWorld,
  startSimulatedWorld,
} from '../../../support/processes/gateway-over-simulated.ts'

/** Far more than all buffers between a device and a client that does not read. */
const PACKETS = 15_000
const TURN_MS = 200
const MERGE = `/api/v1/pcap/timerange?${simulatedRange(PACKETS)}`
const SLOTS = 4
/** No request may miss its stream because the machine is busy. */
const WAIT_S = 600

test('no download is parked while its client reads a little and no one waits', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let writtenBytes = 0n
  let parked = 0
  const fetched = {
    body: { isParkable: true },
    isWanted: () => Promise.resolve(false),
    park: async () => {
      parked += 1
    },
  } as unknown as FetchedDownload
  const res = { writableLength: 1_000, setTimeout: () => {} } as unknown as ServerResponse
  const metrics = new DownloadOutcomes(new Metrics(), () => 1)
  const times = { clientIdleTimeoutMs: TURN_MS, slowAfterMs: TURN_MS, parkedIdleTimeoutMs: TURN_MS }
  const parts = { metrics, log: createLog('test', 'silent'), parkAfterMs: TURN_MS, ...times }
  const { signal } = new AbortController()
  const options = { res, requestId: '', signal, writtenBytes: () => writtenBytes, onFailure: assert.ifError }
  using _watched = watchReader(fetched, parts, options)
  const turn = async () => {
    t.mock.timers.tick(TURN_MS)
    await setImmediate()
  }
  for (let i = 0; i < 10; i += 1) {
    writtenBytes += 2_000n
    await turn()
    await turn()
    assert.equal(parked, 0)
  }
  await turn()
  assert.equal(parked, 1, 'two turns without a byte')
})

describe('parking', () => {
  let world: SimulatedWorld

  before(async () => {
    world = await startSimulatedWorld({
      devices: 2,
      packets: PACKETS + 1,
      packetsPerTick: 2_500,
      settings: { downloads: { parkAfterMs: TURN_MS, slowAfterMs: TURN_MS, waitMaxS: WAIT_S } },
    })
  })
  after(() => world[Symbol.asyncDispose]())

  const open = (path = MERGE) => httpOpen(world.gateway.url + path, { headers: world.gateway.as.user })
  const get = (path: string) => httpGet(world.gateway.url + path, { headers: world.gateway.as.user })
  const parkedCount = () => world.gateway.logged.filter(({ event }) => event === 'download.parked').length

  const untilNothingIsLeft = () =>
    eventually(async () => (await world.redis.leftovers('capfleet')).length === 0, {
      message: 'no lease is left',
    })

  /** Clients that have the head and do not read, until nothing moves any more. */
  async function stall(count: number): Promise<readonly OpenAnswer[]> {
    const answers: OpenAnswer[] = []
    for (let number = 0; number < count; number += 1) answers.push(await open())
    return answers
  }

  test('a client that stands still gives its streams back although no one waits, and can read on', async () => {
    const before = parkedCount()
    const [still] = await stall(1)
    await eventually(() => parkedCount() > before, { message: 'it is parked' })
    await untilNothingIsLeft()
    if (still === undefined) throw new Error('one was opened')
    assert.ok((await buffer(still.response)).equals(simulatedMerge([0, 1], PACKETS)))
  })

  test('a waiting request is served with streams of slow clients; their files are whole in the end', async () => {
    const slow = await stall(SLOTS)
    const waited = await get(`${MERGE}&Wait=${WAIT_S}`)
    assert.ok(waited.body.equals(simulatedMerge([0, 1], PACKETS)))
    assert.ok(parkedCount() >= 1)
    const bodies = await Promise.all(slow.map(({ response }) => buffer(response)))
    for (const body of bodies) assert.ok(body.equals(simulatedMerge([0, 1], PACKETS)))
    assert.deepEqual(
      world.devices.flatMap((device) => device.fifths),
      [],
    )
    const metrics = (await get('/metrics')).body.toString()
    assert.match(metrics, /capfleet_downloads_parked_total [1-9]/)
  })

  test('a parked client that leaves gives everything back', async () => {
    const before = parkedCount()
    const slow = await stall(SLOTS)
    using _waiting = await open(`/devices/d0${MERGE}&Wait=${WAIT_S}`)
    await eventually(() => parkedCount() > before, { message: 'somebody is parked' })
    for (const answer of slow) answer[Symbol.dispose]()
    _waiting[Symbol.dispose]()
    await untilNothingIsLeft()
  })

  describe('a download that cannot be parked, as it follows what comes', () => {
    const FOLLOW = `/devices/d0${MERGE}&Follow=1`

    test('leaves one stream of the device to others, and waits for one of the three', async () => {
      const followed = await Promise.all(Array.from({ length: SLOTS - 1 }, () => open(FOLLOW)))
      const refused = await get(`${FOLLOW}&Wait=0`)
      assert.deepEqual([refused.status, refused.json().code], [503, 'queue-timeout'])
      const other = await get(`/devices/d0${MERGE}&Wait=0`)
      assert.equal(other.status, 200)
      for (const answer of followed) answer[Symbol.dispose]()
    })

    test('is cut when its client hardly reads while others wait', async () => {
      const followed = await Promise.all(Array.from({ length: SLOTS - 1 }, () => open(FOLLOW)))
      await pause(4 * TURN_MS, 'the turns of the stalled downloads pass')
      const ids = followed.map(({ response }) => String(response.headers['capfleet-request-id']))
      const receipts = () => Promise.all(ids.map(async (id) => (await get(`/v1/requests/${id}`)).json()))
      assert.deepEqual(
        (await receipts()).map(({ status }) => status),
        ['streaming', 'streaming', 'streaming'],
        'nobody is cut while nobody waits',
      )
      using _waiting = await open(`${FOLLOW}&Wait=${WAIT_S}`)
      assert.equal(_waiting.response.statusCode, 200)
      await eventually(
        async () =>
          (await receipts()).some(
            ({ status, error }) =>
              status === 'failed' && (error as { code?: string }).code === 'client-timeout',
          ),
        { message: 'a receipt says why one was cut' },
      )
      for (const answer of followed) answer[Symbol.dispose]()
    })
  })
})
