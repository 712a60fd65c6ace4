// Devices of other makers that pass over a filter without a word: what callers get of them, alone, in a merge and in an export.
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import {
  API_BEGIN_NS,
  API_CAPTURE,
  API_STEP_NS,
  type ApiBehaviour,
  ApiDevice,
} from '../../../support/devices/api-device.ts'
import { ExportWorld } from '../../../support/exports/export-world.ts'
import { type HttpAnswer, httpGet } from '../../../support/http-get.ts'
import { readPcap } from '../../../support/packets/pcap-records.ts'
import { pause } from '../../../support/pause.ts'
import { startTempGateway, type TempGateway } from '../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'
import { startTempWorker } from '../../../support/processes/temp-worker.ts'

const PACKETS = 20
const END_NS = API_BEGIN_NS + BigInt(PACKETS) * API_STEP_NS
const RANGE = `TSBegin=${API_BEGIN_NS}&TSEnd=${END_NS}&TSUnit=nanos`
const WAYS = [
  ['of a range', `/devices/foreign/api/v1/pcap/timerange?${RANGE}`],
  ['of a range by its legacy path', `/devices/foreign/pcap/timerange?${RANGE}`],
  ['of a capture', `/devices/foreign/api/v1/pcap/single?StreamName=${API_CAPTURE}`],
  [
    'of a part of a capture',
    `/devices/foreign/api/v1/pcap/splittime?StreamName=${API_CAPTURE}&Start=${API_BEGIN_NS}&Stop=${END_NS}`,
  ],
  ['in a merge', `/api/v1/pcap/timerange?${RANGE}&Device=foreign,other`],
] as const
const SILENT: ApiBehaviour = { ignores: ['FilterBPF', 'FilterFrame'] }

describe('a device of another maker that may pass over filters', () => {
  const parts = new AsyncDisposableStack()
  let redis: TempRedis
  let foreign: ApiDevice
  let other: ApiDevice
  let gateway: TempGateway

  before(async () => {
    redis = parts.use(await TempRedis.create())
    foreign = parts.use(await ApiDevice.start('foreign', PACKETS))
    other = parts.use(await ApiDevice.start('other', PACKETS))
  })
  after(() => parts.disposeAsync())
  // What a device has shown is known for a while.
  beforeEach(async () => {
    for (const device of [foreign, other]) {
      device.behaviour = {}
      device.refusal = undefined
      device.asked.length = 0
    }
    gateway = await startTempGateway([foreign, other], redis.url)
  })
  afterEach(() => gateway[Symbol.asyncDispose]())

  const get = (path: string) => httpGet(gateway.url + path, { headers: gateway.as.user })

  function assertRefused(answer: HttpAnswer, parameter: string): void {
    const { code, param, detail, devices } = answer.json()
    assert.deepEqual([answer.status, code, param, devices], [400, 'bad-parameter', parameter, ['foreign']])
    assert.match(String(detail), /^device foreign is a third-party device and does not support/)
  }

  function assertNothing({ status, body }: HttpAnswer): void {
    assert.notEqual(status, 200)
    assert.match(body.toString(), /device foreign/)
  }

  for (const [how, path] of WAYS) {
    test(`gives nothing in place of filtered packets: ${how}`, async () => {
      foreign.behaviour = SILENT
      for (const filter of ['FilterBPF=odd', 'FilterFrame=capture.port==3', 'FilterPort=3'])
        assertRefused(
          await get(`${path}&${filter}`),
          filter.startsWith('FilterBPF') ? 'FilterBPF' : 'FilterFrame',
        )
      const all = await get(path)
      assert.equal(all.status, 200, all.body.toString())
      assert.ok(readPcap(all.body).records.length >= PACKETS)
    })

    test(`gives what passes the filter when it has shown that it filters, and is asked once: ${how}`, async () => {
      const filtered = await get(`${path}&FilterBPF=odd`)
      assert.equal(filtered.status, 200, filtered.body.toString())
      const { records } = readPcap(filtered.body)
      assert.equal(records.length, how === 'in a merge' ? PACKETS : PACKETS / 2)
      assert.ok(foreign.asked.length > 1)
      foreign.asked.length = 0
      assert.ok((await get(`${path}&FilterBPF=odd`)).body.equals(filtered.body))
      assert.equal(foreign.asked.length, 1)
    })
  }

  for (const ignores of [[], ['FilterBPF']] as const)
    test(`shows it in a capture where it has no paths below /api/v1/: ${ignores.length === 0 ? 'it filters' : 'it does not'}`, async () => {
      foreign.behaviour = { missing: /^\/api\/v1\//, ignores: [...ignores] }
      await using fresh = await startTempGateway([foreign], redis.url)
      const path = `/devices/foreign/api/v1/pcap/single?StreamName=${API_CAPTURE}&FilterBPF=odd`
      const answer = await httpGet(fresh.url + path, { headers: fresh.as.user })
      if (ignores.length > 0) return assertRefused(answer, 'FilterBPF')
      assert.deepEqual([answer.status, readPcap(answer.body).records.length], [200, PACKETS / 2])
    })

  test('may take its time for the first packet', async () => {
    foreign.behaviour = {
      search: () => pause(600, 'longer than a quarter of the least that a filter is given'),
    }
    const { status, body } = await get(`${WAYS[0][1]}&FilterBPF=odd`)
    assert.deepEqual([status, readPcap(body).records.length], [200, PACKETS / 2])
  })

  for (const [how, path] of WAYS.filter(([way]) => way !== 'of a range by its legacy path'))
    test(`has not shown it by one refusal of another reason: ${how}`, async () => {
      let refusals = 1
      const search = async (target: string) => {
        const isRefused = target.includes('less') && refusals-- > 0
        foreign.refusal = isRefused ? { status: 400, text: 'too many streams' } : undefined
      }
      foreign.behaviour = { ...SILENT, search }
      assertRefused(await get(`${path}&FilterBPF=odd`), 'FilterBPF')
    })

  test('has not shown it by one long silence', async () => {
    for (const [, path] of [WAYS[0], WAYS[2]]) {
      let stalls = 1
      const search = async (target: string) => {
        if (target.includes('less') && stalls-- > 0)
          await pause(3_000, 'longer than the least that silence is given')
      }
      foreign.behaviour = { ...SILENT, search }
      assertRefused(await get(`${path}&FilterBPF=odd`), 'FilterBPF')
    }
  })

  test('is asked for each filter separately', async () => {
    foreign.behaviour = { ignores: ['FilterFrame'] }
    const [, path] = WAYS[0]
    assert.equal((await get(`${path}&FilterBPF=odd`)).status, 200)
    assertRefused(await get(`${path}&FilterBPF=odd&FilterFrame=capture.port==3`), 'FilterFrame')
  })

  test('has shown it by refusing a filter that no packet passes', async () => {
    foreign.behaviour = { refusesEmpty: true }
    const { status, body } = await get(`${WAYS[0][1]}&FilterBPF=odd`)
    assert.deepEqual([status, readPcap(body).records.length], [200, PACKETS / 2])
  })

  test('gives nothing in place of filtered packets: its kind is not known yet', async () => {
    foreign.behaviour = { missing: /./ }
    await using fresh = await startTempGateway([foreign], redis.url)
    foreign.behaviour = SILENT
    const answer = await httpGet(`${fresh.url}${WAYS[0][1]}&FilterBPF=odd`, { headers: fresh.as.user })
    assertNothing(answer)
  })

  test('is asked for nothing that it may ignore while its kind is not known, or what the configuration says', async () => {
    foreign.behaviour = { missing: /./ }
    const ignores = ['TSMode']
    const told = { config: { ...other.config, ignores }, password: other.password }
    other.behaviour = { missing: /./ }
    await using fresh = await startTempGateway([foreign, told], redis.url)
    // What it is asked for its kind by stays missing.
    const missing = /^(?!.*\/pcap\/)/
    foreign.behaviour = { ignores: ['Slice'], missing }
    other.behaviour = { ignores: ['Slice'], missing }
    const path = (device: string) => `${fresh.url}/devices/${device}/api/v1/pcap/timerange?${RANGE}`
    for (const parameter of ['Slice=7', 'TSMax=5', 'TSMode=vendorB3550', 'MaxPackets=3'])
      assertNothing(await httpGet(`${path('foreign')}&${parameter}`, { headers: fresh.as.user }))
    const sliced = await httpGet(`${path('other')}&Slice=7`, { headers: fresh.as.user })
    assert.ok(readPcap(sliced.body).records.every(({ captured }) => captured.length === 7))
    const refused = await httpGet(`${path('other')}&TSMode=vendorB3550`, { headers: fresh.as.user })
    assert.deepEqual([refused.status, refused.json().param], [400, 'TSMode'])
  })

  test('gives nothing in place of filtered packets: its oldest packet is removed while it shows', async () => {
    // Both questions so far were for the first packet.
    const isGone = () => foreign.asked.length > 2
    foreign.behaviour = { ...SILENT, order: (records) => (isGone() ? records.slice(1) : records) }
    const answer = await get(`${WAYS[0][1]}&FilterBPF=odd`)
    assertNothing(answer)
  })

  test('gives nothing in place of filtered packets: they come after it had none', async () => {
    foreign.behaviour = { ...SILENT, order: (records) => (foreign.asked.length > 1 ? records : []) }
    const answer = await get(`${WAYS[0][1]}&FilterBPF=odd`)
    assertNothing(answer)
  })

  for (const [[how, path], filter] of [
    [WAYS[2], 'FilterBPF'],
    [WAYS[3], 'FilterFrame'],
  ] as const)
    test(`gives nothing in place of filtered packets: it heeds ${filter} of ranges, but not ${how}`, async () => {
      foreign.behaviour = {
        get ignores() {
          return foreign.asked.at(-1)?.includes('/timerange?') === true ? [] : [filter]
        },
      }
      const answer = await get(`${path}&${filter}=${filter === 'FilterBPF' ? 'odd' : 'capture.port==3'}`)
      assertNothing(answer)
    })

  test('shows it also when a stream that has ended counts a little longer', async () => {
    foreign.behaviour = { streamsMax: 1, isFreedLate: true }
    const { status, body } = await get(`${WAYS[0][1]}&FilterBPF=odd&Wait=20`)
    assert.equal(status, 200, `${foreign.asked.length} questions`)
    assert.equal(readPcap(body).records.length, PACKETS / 2)
  })

  test('may have no packets that a filter could leave out, big-endian timestamps of microseconds, and zeros at its end', async () => {
    foreign.behaviour = SILENT
    const before = `TSBegin=${API_BEGIN_NS - 2_000n}&TSEnd=${API_BEGIN_NS - 1_000n}&TSUnit=nanos`
    const none = await get(`/devices/foreign/api/v1/pcap/timerange?${before}&FilterBPF=odd`)
    assert.deepEqual([none.status, readPcap(none.body).records.length], [200, 0])
    foreign.behaviour = { isCoarse: true, isBigEndian: true, zeros: 512 }
    // The gateway makes a little-endian file of it.
    const { status, body } = await get(`${WAYS[0][1]}&FilterBPF=odd&MaxPackets=100`)
    assert.deepEqual([status, readPcap(body).records.length], [200, PACKETS / 2])
  })
})

test('an export of a device that passes over its filter fails, and has no file', async () => {
  await using parts = new AsyncDisposableStack()
  const foreign = parts.use(await ApiDevice.start('foreign', PACKETS))
  foreign.behaviour = SILENT
  process.env.FOREIGN_PASSWORD = foreign.password
  const devices = [{ ...foreign.config, password: { env: 'FOREIGN_PASSWORD' } }]
  const world = parts.use(await ExportWorld.create({ captureBytes: 0, settings: { devices } }))
  parts.use(await startTempWorker(world.gateway))
  const failed = await world.ended(await world.ordered(`${RANGE}&Device=foreign&FilterBPF=odd`))
  assert.deepEqual([failed.state, failed.files], ['failed', []], JSON.stringify(failed))
  assert.match(
    JSON.stringify(failed),
    /device foreign is a third-party device and does not support FilterBPF/,
  )
})
