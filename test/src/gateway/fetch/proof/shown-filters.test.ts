// Third-party devices that silently ignore a filter: what callers get from them, alone, in a merge and in an export.
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, mock, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { NO_OPEN_CHUNK } from '../../../../../src/gateway/device/body-framing.ts'
import type { DeviceClient } from '../../../../../src/gateway/device/device-client.ts'
import { awaitShownFilters } from '../../../../../src/gateway/fetch/proof/shown-filters.ts'
import { openSource } from '../../../../../src/gateway/fetch/stream/source.ts'
import { UNKNOWN_STATE } from '../../../../../src/gateway/fleet/device-identity.ts'
import {
  API_BEGIN_NS,
  API_CAPTURE,
  API_STEP_NS,
  type ApiBehaviour,
  ApiDevice,
} from '../../../../support/devices/api-device.ts'
import { eventually } from '../../../../support/eventually.ts'
import { ExportWorld } from '../../../../support/exports/export-world.ts'
import { type HttpAnswer, httpGet } from '../../../../support/http-get.ts'
import { makePacket, makePcap } from '../../../../support/packets/packet-maker.ts'
import { readPcap } from '../../../../support/packets/pcap-records.ts'
import { pause } from '../../../../support/pause.ts'
import { startTempGateway, type TempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'
import { startTempWorker } from '../../../../support/processes/temp-worker.ts'

const PACKETS = 20
/** After this long a download leaves a search; every other answer of the device must come sooner. */
const SEARCH_LIMIT_MS = 5_000
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
const HEEDED = { ports: 'the capture port', first: 'the first condition', equal: 'the operator ==' }
const SILENT: ApiBehaviour = { ignores: ['FilterBPF', 'FilterFrame'] }

describe('a third-party device that may ignore filters', () => {
  const parts = new AsyncDisposableStack()
  let redis: TempRedis
  let foreign: ApiDevice
  let other: ApiDevice
  let gateway: TempGateway
  let rounds = 0

  before(async () => {
    redis = parts.use(await TempRedis.create())
    foreign = parts.use(await ApiDevice.start('foreign', PACKETS))
    other = parts.use(await ApiDevice.start('other', PACKETS))
    gateway = parts.use(await startTempGateway([foreign, other], redis.url))
  })
  after(() => parts.disposeAsync())
  beforeEach(async () => {
    for (const device of [foreign, other]) {
      device.behaviour = {}
      device.refusal = undefined
      device.mostRunning = 0
      device.breaks.length = 0
      device.asked.length = 0
    }
    // What a device has proved is remembered for a while, unless its configuration changes.
    rounds += 1
    const devices = gateway.config.devices.map((device) => ({ ...device, site: `${rounds}` }))
    await gateway.reload({ ...gateway.config, devices })
  })

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

  describe('of FilterFrame', () => {
    const filtered = (filter: string) => get(`${WAYS[0][1]}&FilterFrame=${encodeURIComponent(filter)}`)

    for (const [frames, filter] of [
      ['ports', 'a7130.device==7'],
      ['ports', 'a7130.srcdevice!=0'],
      ['ports', 'capture.port==3 and c3550.srcport==7'],
      ['first', 'capture.port==1,2 and capture.port==2,3'],
      ['first', 'capture.port==1,2 and a7130.device==7'],
      ['equal', 'capture.port!=3'],
      ['equal', 'capture.port==1,2 and a7130.srcdevice!=0'],
    ] as const)
      test(`gives nothing when it heeds ${HEEDED[frames]} only: ${filter}`, async () => {
        foreign.behaviour = { frames }
        assert.equal((await filtered('capture.port==1,2')).status, 200, 'it heeds this one')
        assertRefused(await filtered(filter), 'FilterFrame')
      })

    test('gives what passes several conditions when it heeds them all', async () => {
      for (const [filter, count] of [
        ['capture.port==1,2 and capture.port==2,3', PACKETS / 4],
        ['a7130.device!=7 and capture.port!=0 and c3550.srcport!=3', (3 * PACKETS) / 4],
        ['a7130.srcport==3', 0],
      ] as const) {
        const { status, body } = await filtered(filter)
        assert.deepEqual([status, readPcap(body).records.length], [200, count], filter)
      }
    })
  })

  describe('of which packets are in tunnels', () => {
    const inner = (way: string) => get(`${way}&FilterBPF=inner&FilterBPFDecap=true`)

    test('gives what is inside of them when it has shown that it looks inside', async () => {
      for (const way of [WAYS[0][1], WAYS[2][1]] as const) {
        foreign.behaviour = { tunnels: 'looks inside' }
        foreign.asked.length = 0
        const { status, body } = await inner(way)
        assert.deepEqual([status, readPcap(body).records.length], [200, PACKETS / 2], body.toString())
        assert.ok(foreign.asked.some((target) => target.includes('4789')))
        foreign.asked.length = 0
        assert.equal((await inner(way)).status, 200)
        assert.equal(foreign.asked.length, 1, 'it has shown it')
      }
    })

    test('gives nothing when it passes FilterBPFDecap over', async () => {
      foreign.behaviour = { tunnels: 'ignores FilterBPFDecap' }
      for (const way of [WAYS[0][1], WAYS[2][1]] as const) assertRefused(await inner(way), 'FilterBPFDecap')
    })

    test('gives what passes the filter where no packet is in a tunnel', async () => {
      const { status, body } = await get(`${WAYS[0][1]}&FilterBPF=odd&FilterBPFDecap=true`)
      assert.deepEqual([status, readPcap(body).records.length], [200, PACKETS / 2])
    })
  })

  describe('that heeds a filter only without another parameter', () => {
    const passesOver = (filter: 'FilterBPF' | 'FilterFrame', beside: string) => ({
      compresses: true,
      get ignores() {
        const names = [...new URL(foreign.asked.at(-1) ?? '', 'http://device').searchParams.keys()]
        return names.includes(beside) ? [filter] : []
      },
    })

    for (const [filter, beside, parameters] of [
      ['FilterFrame', 'FilterBPF', ['FilterBPF=odd', 'FilterFrame=capture.port==1,2']],
      ['FilterBPF', 'FilterFrame', ['FilterBPF=odd', 'FilterFrame=capture.port==1,2']],
      ['FilterBPF', 'Compression', ['FilterBPF=odd', 'Compression=fast']],
      ['FilterBPF', 'FilterBPFDecap', ['FilterBPF=odd', 'FilterBPFDecap=true']],
      ['FilterBPF', 'TSMode', ['FilterBPF=odd', 'TSMode=vendorB3550']],
    ] as const)
      test(`gives nothing when both are asked for: ${filter} and ${beside}`, async () => {
        foreign.behaviour = passesOver(filter, beside)
        for (const parameter of parameters.filter(
          (one) => one.startsWith('Filter') && !one.includes('Decap'),
        ))
          assert.equal((await get(`${WAYS[0][1]}&${parameter}`)).status, 200, `${parameter} alone`)
        assertRefused(await get(`${WAYS[0][1]}&${parameters.join('&')}`), filter)
      })

    test('gives what passes both when it heeds both, compressed or not', async () => {
      foreign.behaviour = { compresses: true }
      const both = `${WAYS[0][1]}&FilterBPF=odd&FilterFrame=capture.port==1,2`
      const { status, body } = await get(both)
      assert.deepEqual([status, readPcap(body).records.length], [200, PACKETS / 4])
      assert.ok(gunzipSync((await get(`${both}&Compression=fast`)).body).equals(body))
    })
  })

  describe('that no longer applies filters', () => {
    const [, path] = WAYS[0]
    const filtered = async (from = gateway) =>
      await httpGet(`${from.url}${path}&FilterBPF=odd`, { headers: from.as.user })

    test('gives nothing when it has another version', async () => {
      await using probing = await startTempGateway([foreign], redis.url, { health: { intervalS: 1 } })
      assert.equal((await filtered(probing)).status, 200)
      foreign.behaviour = { ...SILENT, version: '7.2' }
      const versionNow = async () => {
        const { body } = await httpGet(`${probing.url}/v1/devices`, { headers: probing.as.user })
        return (JSON.parse(body.toString()) as { devices: { version: string }[] }).devices[0]?.version
      }
      await eventually(async () => (await versionNow()) === '7.2', { message: 'it has been probed' })
      assertRefused(await filtered(probing), 'FilterBPF')
    })

    test('gives nothing when a download broke off', async () => {
      assert.equal((await filtered()).status, 200)
      foreign.breaks.push({ afterBytes: 500, by: 'reset' })
      await assert.rejects(get(path))
      foreign.behaviour = SILENT
      assertRefused(await filtered(), 'FilterBPF')
    })

    test('gives nothing when it could not be reached', async () => {
      assert.equal((await filtered()).status, 200)
      foreign.behaviour = { streamsMax: 0, limit: 'reset' }
      assert.equal((await get(path)).status, 502)
      foreign.behaviour = SILENT
      assertRefused(await filtered(), 'FilterBPF')
    })

    test('is asked again within a merge when its stream broke off', async () => {
      const merge = `${WAYS[4][1]}&FilterBPF=odd`
      assert.equal((await get(merge)).status, 200)
      foreign.asked.length = 0
      foreign.breaks.push({ afterBytes: 500, by: 'reset' })
      foreign.behaviour = {
        get ignores() {
          return foreign.breaks.length > 0 ? [] : (['FilterBPF'] as const)
        },
      }
      await assert.rejects(get(merge))
      assert.ok(foreign.asked.some((target) => target.includes('less')))
    })
  })

  test('is asked once by all who wait for the answer, which it may look through a whole capture for', async () => {
    const all = Promise.withResolvers<void>()
    const isContradiction = (target: string) => target.includes('less')
    foreign.behaviour = {
      streamsMax: 1,
      scan: (target) => (isContradiction(target) ? all.promise : undefined),
    }
    const url = `${WAYS[2][1]}&FilterBPF=odd&Wait=55`
    const slotsUsed = async () => {
      const { devices } = (await get('/v1/devices')).json() as { devices: { slotsUsed: number | null }[] }
      return devices[0]?.slotsUsed
    }
    const answers = Promise.all(Array.from({ length: 4 }, () => get(url)))
    await eventually(async () => (await slotsUsed()) === 4, { message: 'all have a lease' })
    await foreign.until(() => foreign.running === 1 && foreign.asked.some(isContradiction))
    all.resolve()
    for (const { status, body } of await answers)
      assert.deepEqual([status, readPcap(body).records.length], [200, PACKETS / 2], body.toString())
    assert.equal(foreign.asked.filter(isContradiction).length, 1)
    assert.equal(foreign.mostRunning, 1)
  })

  test('keeps its stream while it searches for longer than a caller waits, and what it finds counts', async () => {
    const found = Promise.withResolvers<void>()
    foreign.behaviour = { scan: (target) => (target.includes('less') ? found.promise : undefined) }
    await using fresh = await startTempGateway([foreign], redis.url, {
      downloads: { startTimeoutMs: SEARCH_LIMIT_MS },
    })
    const ask = (path: string) => httpGet(fresh.url + path, { headers: fresh.as.user })
    const url = `${WAYS[2][1]}&FilterBPF=odd&Wait=0`
    const slotsUsed = async () =>
      ((await ask('/v1/devices')).json() as { devices: { slotsUsed: number | null }[] }).devices[0]?.slotsUsed
    const late = await ask(url)
    assert.deepEqual([late.status, late.json().code], [504, 'device-timeout'], late.body.toString())
    assert.deepEqual(
      [foreign.running, await slotsUsed()],
      [1, 1],
      'the device counts it, and so does the queue',
    )
    found.resolve()
    await eventually(async () => (await slotsUsed()) === 0, { message: 'the lease is given back' })
    assert.equal(foreign.running, 0)
    foreign.asked.length = 0
    const { status, body } = await ask(url)
    assert.deepEqual([status, readPcap(body).records.length], [200, PACKETS / 2], body.toString())
    assert.equal(foreign.asked.length, 1, 'it has shown it')
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
    // The path that reveals its kind stays missing.
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
    // Both requests so far were for the first packet.
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
    // No stream follows the last one.
    foreign.behaviour = {}
    assert.equal(status, 200, `${foreign.asked.length} questions`)
    assert.equal(readPcap(body).records.length, PACKETS / 2)
  })

  test('may have no packets that a filter could leave out, and compress that', async () => {
    const told = { config: { ...foreign.config, fetchCompression: 'fast' }, password: foreign.password }
    await using packing = await startTempGateway([told, other], redis.url)
    const none = `TSBegin=${API_BEGIN_NS - 2_000n}&TSEnd=${API_BEGIN_NS - 1_000n}&TSUnit=nanos`
    const ways = [
      `/devices/foreign/api/v1/pcap/timerange?${none}&Compression=fast`,
      `/devices/foreign/api/v1/pcap/timerange?${none}&MaxPackets=7`,
      `/api/v1/pcap/timerange?${none}&Device=foreign,other`,
    ]
    const filtered = async (way: string) =>
      await httpGet(`${packing.url}${way}&FilterBPF=odd`, { headers: packing.as.user })
    for (const isChunked of [false, true])
      for (const way of ways) {
        foreign.behaviour = { ...SILENT, compresses: true, isChunked }
        const { status, body } = await filtered(way)
        assert.equal(status, 200, body.toString())
        const file = way.includes('Compression') ? gunzipSync(body) : body
        assert.deepEqual(file, makePcap([]))
        // Packets that arrive only after a question that showed none.
        foreign.asked.length = 0
        const order = () => (foreign.asked.length > 1 ? [makePacket(API_BEGIN_NS - 1_500n, 'late')] : [])
        foreign.behaviour = { ...SILENT, compresses: true, isChunked, order }
        assertNothing(await filtered(way))
      }
  })

  test('does not fill up an answer without packets for ever, packed or not', async () => {
    const none = `TSBegin=${API_BEGIN_NS - 2_000n}&TSEnd=${API_BEGIN_NS - 1_000n}&TSUnit=nanos&FilterBPF=odd`
    const told = { config: { ...foreign.config, fetchCompression: 'fast' }, password: foreign.password }
    await using packing = await startTempGateway([told, other], redis.url)
    for (const [compresses, at] of [
      [false, gateway],
      [true, packing],
    ] as const)
      for (const [zeros, expected] of [
        [1_000_000, 200],
        [2_000_000, 502],
      ] as const) {
        foreign.behaviour = { ...SILENT, compresses, zeros }
        const path = `/devices/foreign/api/v1/pcap/timerange?${none}&MaxPackets=7`
        const { status, body } = await httpGet(at.url + path, { headers: at.as.user })
        assert.equal(status, expected, body.toString())
        if (status === 502)
          assert.match(
            body.toString(),
            /device foreign .* sends more than 1\.00 MiB after the header of the file/,
          )
      }
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

describe('the time that a device has to show that it heeds a filter', () => {
  const device = 'slow'
  const signal = new AbortController().signal
  const target = `/api/v1/pcap/single?StreamName=${API_CAPTURE}&FilterBPF=odd`
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  /** Each stream begins after the time that `takesMs` returns; otherwise the clock stands still. */
  const clientOf = (takesMs: (target: string) => number) =>
    ({
      device: { name: device },
      openStream: async (asked: string, options: { readonly signal: AbortSignal }) => {
        mock.timers.tick(takesMs(asked))
        options.signal.throwIfAborted()
        const records = asked.includes('less') ? [] : [makePacket(API_BEGIN_NS, 'packet')]
        const reads = [
          { data: [makePcap(records)], framed: [], open: NO_OPEN_CHUNK, release: () => undefined },
        ]
        return {
          head: { status: 200, headers: {}, framing: 'until-close' },
          next: async () => reads.shift(),
          [Symbol.dispose]: () => undefined,
        }
      },
    }) as unknown as DeviceClient

  test('is that of one stream for each of them', async () => {
    const step = { device, target, deviceKind: 'api', isForced: false } as const
    const opening = { caller: 'ann', signal, startTimeoutMs: 5_000 }
    using source = await openSource(
      clientOf(() => 4_000),
      step,
      opening,
    )
    assert.equal(source.encoding, 'none')
    await assert.rejects(
      openSource(
        clientOf(() => 6_000),
        step,
        opening,
      ),
      { code: 'device-timeout', message: 'device slow did not begin to answer within 5 s' },
    )
  })

  test('is longer where it looks through a whole capture', async () => {
    const search = (asked: string) => (asked.includes('less') ? 40_000 : 1_000)
    const limits = { caller: 'ann', signal, startTimeoutMs: 5_000, state: UNKNOWN_STATE }
    const step = { device, target }
    assert.equal(await awaitShownFilters(clientOf(search), step, { ...limits, patienceMs: 50_000 }), 'all')
    await assert.rejects(awaitShownFilters(clientOf(search), step, { ...limits, patienceMs: 30_000 }), {
      code: 'device-timeout',
      message: /^device slow did not show that it applies the filter, .* within 30 s$/,
    })
  })
})

test('an export with parts that have no packets, of a device that compresses for the gateway, is complete', async () => {
  await using parts = new AsyncDisposableStack()
  const foreign = parts.use(await ApiDevice.start('foreign', PACKETS, { compresses: true }))
  process.env.FOREIGN_PASSWORD = foreign.password
  const devices = [{ ...foreign.config, password: { env: 'FOREIGN_PASSWORD' }, fetchCompression: 'fast' }]
  const world = parts.use(await ExportWorld.create({ captureBytes: 0, settings: { devices } }))
  parts.use(await startTempWorker(world.gateway))
  const range = `TSBegin=${API_BEGIN_NS - 2_000_000_000n}&TSEnd=${END_NS}&TSUnit=nanos`
  const ended = await world.ended(await world.ordered(`${range}&Device=foreign&FilterBPF=odd&PartTime=1s`))
  assert.equal(ended.state, 'complete', JSON.stringify(ended))
  const packets = (await world.files(ended)).map((file) => readPcap(file).records.length)
  assert.equal(
    packets.reduce((sum, count) => sum + count, 0),
    PACKETS / 2,
  )
})

test('an export of a device that ignores its filter fails, and has no file', async () => {
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
