// Third-party appliances, which know only the API: queue, merge and guarantees hold for them too.
import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { after, before, beforeEach, describe, test } from 'node:test'
import { gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { Receipt } from '../../../../src/gateway/serve/receipt.ts'
import {
  API_BEGIN_NS,
  API_CAPTURE,
  API_STEP_NS,
  ApiDevice,
  type LimitStyle,
} from '../../../support/devices/api-device.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../support/http-get.ts'
import { makePcap } from '../../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../../../support/packets/pcap-records.ts'
import { startTempGateway, type TempGateway } from '../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const PACKETS = 200
const RANGE = `TSBegin=${API_BEGIN_NS}&TSEnd=${API_BEGIN_NS + BigInt(PACKETS) * API_STEP_NS}&TSUnit=nanos`

describe('a third-party device', () => {
  const parts = new AsyncDisposableStack()
  let gateway: TempGateway
  let foreign: ApiDevice
  let other: ApiDevice
  let poor: ApiDevice

  before(async () => {
    const redis = parts.use(await TempRedis.create())
    foreign = parts.use(await ApiDevice.start('foreign', PACKETS))
    other = parts.use(await ApiDevice.start('other', PACKETS))
    poor = parts.use(await ApiDevice.start('poor', PACKETS))
    const ignores = ['FilterBPF', 'Compression', 'TSMode']
    const devices = [foreign, other, { config: { ...poor.config, ignores }, password: poor.password }]
    gateway = parts.use(await startTempGateway(devices, redis.url, { downloads: { waitMaxS: 600 } }))
  })
  after(() => parts.disposeAsync())
  beforeEach(() => {
    for (const device of [foreign, other, poor]) {
      device.behaviour = {}
      device.breaksLeft = 0
      device.refusal = undefined
      device.captures = [API_CAPTURE]
      device.swapsAfterBreak = false
      device.asked.length = 0
      device.refused = 0
      device.mostRunning = 0
    }
  })

  const get = (path: string) =>
    httpGet(gateway.url + path, { headers: { ...gateway.as.user, TE: 'trailers' } })
  const range = (parameters = '') => get(`/devices/foreign/api/v1/pcap/timerange?${RANGE}${parameters}`)
  const single = (parameters = '') =>
    get(`/devices/foreign/api/v1/pcap/single?StreamName=${API_CAPTURE}${parameters}`)
  const whole = () => makePcap(foreign.records)

  const slotsUsed = async () => {
    const { devices } = (await get('/v1/devices')).json() as { devices: { slotsUsed: number | null }[] }
    return devices[0]?.slotsUsed
  }

  const receiptOf = async (headers: IncomingHttpHeaders): Promise<Receipt> =>
    (await get(`/v1/requests/${headers['capfleet-request-id']}`)).json() as unknown as Receipt

  /** The result of a range that is cut. */
  async function cutRange(): Promise<{ readonly id: string; readonly got: Buffer }> {
    const url = `${gateway.url}/devices/foreign/api/v1/pcap/timerange?${RANGE}`
    using answer = await httpOpen(url, { headers: { ...gateway.as.user, TE: 'trailers' } })
    const pieces: Buffer[] = []
    const read = async () => {
      for await (const piece of answer.response) pieces.push(piece as Buffer)
    }
    await assert.rejects(read())
    return { id: String(answer.response.headers['capfleet-request-id']), got: Buffer.concat(pieces) }
  }

  test('is distinguished from one of ours', async () => {
    const { devices } = (await get('/v1/devices')).json() as { devices: Record<string, unknown>[] }
    assert.deepEqual(
      devices.map(({ name, kind, ignores }) => [name, kind, ignores]),
      [
        ['foreign', 'api', []],
        ['other', 'api', []],
        ['poor', 'api', ['FilterBPF', 'Compression', 'TSMode']],
      ],
    )
  })

  for (const limit of [
    '503',
    '503 with Retry-After',
    '429',
    'text',
    'nothing',
    'reset',
    'wait',
  ] as const satisfies readonly LimitStyle[])
    test(`that says "${limit}" to a stream too many gives its packets to all who wait`, async () => {
      const held = foreign.until(() => foreign.refused > 0)
      foreign.behaviour = { streamsMax: 1, limit, held }
      const answers = await Promise.all(Array.from({ length: 12 }, () => range('&Wait=600')))
      assert.deepEqual(
        answers.map(({ status, body }) => [status, body.equals(whole())]),
        Array.from({ length: 12 }, () => [200, true]),
      )
      assert.equal(foreign.mostRunning, 1)
      assert.ok(foreign.refused > 0)
    })

  for (const limit of ['text', 'nothing', 'reset'] as const)
    test(`that says "${limit}" only when the other stream has ended is asked again`, async () => {
      const held = foreign.until(() => foreign.refused > 0)
      const ended = Promise.withResolvers<void>()
      foreign.behaviour = { streamsMax: 1, limit, held, refusalHeld: ended.promise }
      const first = range('&Wait=600')
      await foreign.until(() => foreign.running === 1)
      const second = range('&Wait=600')
      assert.equal((await first).status, 200)
      await eventually(async () => (await slotsUsed()) === 1, {
        message: 'the lease of the first is given back',
      })
      ended.resolve()
      const { status, body } = await second
      assert.deepEqual([status, body.equals(whole())], [200, true])
    })

  test('that fails in another way than by a stream too many is not waited for while others have streams', async () => {
    const over = Promise.withResolvers<void>()
    foreign.behaviour = { held: over.promise }
    const first = range('&Wait=600')
    await foreign.until(() => foreign.running === 1)
    const { status, body } = await range('&Wait=600&Compression=fast')
    assert.deepEqual([status, foreign.asked.length], [502, 2])
    assert.match(
      body.toString(),
      /device foreign did not compress its answer where gzip was asked for; .*ignores: \[Compression\]/,
    )
    over.resolve()
    assert.equal((await first).status, 200)
  })

  for (const [asked, sends, expected] of [
    ['zstd', () => gzipSync(whole()), /compressed its answer with gzip where zstd was asked for/],
    ['none', () => gzipSync(whole()), /compressed its answer with gzip unasked; ask with Compression=fast/],
    ['fast', () => zstdCompressSync(whole()), /compressed its answer with zstd where gzip was asked for/],
  ] as const)
    test(`that sends another encoding than ${asked} is not relayed, and merged all the same`, async () => {
      foreign.refusal = { status: 200, text: sends() }
      const { status, body } = await range(`&Compression=${asked}`)
      assert.equal(status, 502)
      assert.match(body.toString(), expected)
      const merged = await get(`/api/v1/pcap/timerange?${RANGE}&Device=foreign,other`)
      assert.deepEqual([merged.status, readPcap(merged.body).records.length], [200, 2 * PACKETS])
    })

  test('whose compressed body is a text is no PCAP, whatever its length', async () => {
    for (const text of ['Error: too many streams\n', 'Error: too many streams, and more than that\n']) {
      foreign.refusal = { status: 200, text: gzipSync(text) }
      await assert.rejects(range('&Compression=fast'))
    }
  })

  test('that sends the same text to all callers is reported with it when the wait is over', async () => {
    const over = Promise.withResolvers<void>()
    foreign.behaviour = { held: over.promise }
    const first = range('&Wait=600')
    await foreign.until(() => foreign.running === 1)
    foreign.refusal = { status: 200, text: 'maintenance until Monday' }
    const { status, body } = await range('&Wait=1')
    assert.deepEqual([status, body.includes('no download slot')], [502, false])
    over.resolve()
    assert.equal((await first).status, 200)
  })

  for (const status of [400, 401, 403]) {
    test(`that refuses a stream too many with status ${status} is waited for`, async () => {
      const over = Promise.withResolvers<void>()
      const search = async () => {
        foreign.refusal = foreign.running > 0 ? { status, text: 'too many streams' } : undefined
      }
      foreign.behaviour = { held: over.promise, search }
      const first = range('&Wait=600')
      await foreign.until(() => foreign.running === 1)
      const second = range('&Wait=600')
      await eventually(async () => foreign.asked.length > 1, { message: 'the second one is asked for' })
      over.resolve()
      for (const { status: got, body } of await Promise.all([first, second]))
        assert.deepEqual([got, body.equals(whole())], [200, true])
    })

    test(`that refuses with status ${status} is reported with that when the wait is over`, async () => {
      const over = Promise.withResolvers<void>()
      foreign.behaviour = { held: over.promise }
      const first = range('&Wait=600')
      await foreign.until(() => foreign.running === 1)
      foreign.refusal = { status, text: 'no such luck' }
      const { status: got, body } = await range('&Wait=1')
      assert.equal(got, status === 400 ? 400 : 502)
      assert.match(body.toString(), status === 400 ? /no such luck/ : /rejected the gateway's credentials/)
      over.resolve()
      assert.equal((await first).status, 200)
    })
  }

  test('does not know Dedup: the gateway drops the copies', async () => {
    foreign.behaviour = { order: (records) => records.flatMap((record) => [record, record]) }
    for (const parameter of ['Dedup=1000', 'Dedup=1000&DedupBy=ip']) {
      const { status, body, trailers } = await range(`&${parameter}`)
      assert.equal(status, 200)
      assert.deepEqual(recordLines(readPcap(body).records), recordLines(foreign.records))
      assert.equal(trailers['capfleet-duplicates'], String(PACKETS))
    }
    assert.ok(foreign.asked.every((asked) => !asked.includes('Dedup')))
  })

  test('does not know Strip, nor can the gateway do it: 400 with the name of the device', async () => {
    const { status, body } = await range('&Strip=vlan')
    assert.equal(status, 400)
    assert.match(body.toString(), /device foreign is a third-party device and does not support Strip here/)
    assert.equal(foreign.asked.filter((asked) => asked.includes('Strip')).length, 0)
  })

  test('alone has no use for Align, also where the gateway works on its packets', async () => {
    const [alone, sliced] = [await range('&Align=true'), await range('&Align=true&Slice=7')]
    assert.deepEqual([alone.status, sliced.status], [400, 400])
  })

  test('that refuses a stream is shown with the limit that it has for now', async () => {
    foreign.behaviour = { streamsMax: 0 }
    const waiting = range('&Wait=600')
    const limitsOf = async () => {
      const { devices } = (await get('/v1/devices')).json() as { devices: { slotsLimit: number | null }[] }
      return devices.map(({ slotsLimit }) => slotsLimit)
    }
    const isLowered = async () => (await limitsOf()).join() === '0,,'
    await eventually(isLowered, { message: 'the limit is shown' })
    const isTold = async () =>
      (await httpGet(`${gateway.url}/metrics`)).body.includes(
        '\ncapfleet_device_streams_limit{device="foreign"} 0\n',
      )
    await eventually(isTold, { message: 'the metric tells it' })
    foreign.behaviour = {}
    assert.equal((await waiting).status, 200)
  })

  test('that frees a stream late is asked again', async () => {
    const held = foreign.until(() => foreign.refused > 0)
    foreign.behaviour = { streamsMax: 1, isFreedLate: true, held }
    const answers = await Promise.all(Array.from({ length: 3 }, () => range('&Wait=600')))
    // No question follows the last one.
    foreign.behaviour = {}
    for (const { status, body } of answers) assert.deepEqual([status, body.equals(whole())], [200, true])
  })

  for (const limit of ['text', 'nothing', 'reset'] as const)
    test(`that frees a stream late and says "${limit}" gives packets to consecutive callers`, async () => {
      foreign.behaviour = { streamsMax: 1, isFreedLate: true, limit }
      for (const parameters of ['&Wait=600', '&Wait=600', '&Wait=600&FilterBPF=odd'])
        assert.equal((await range(parameters)).status, 200, `${parameters}, ${foreign.asked.length} streams`)
      assert.ok(foreign.refused > 1)
      // No caller comes after the last one.
      foreign.behaviour = {}
    })

  test('that is busy when the caller may not wait is no fault of the request', async () => {
    foreign.behaviour = { streamsMax: 0 }
    const { status, headers, body } = await range('&Wait=0')
    assert.equal(status, 503)
    assert.match(body.toString(), /device foreign is busy \(status 503\)/)
    assert.equal(headers['retry-after'] !== undefined, true)
  })

  describe('has done by the gateway what it does not know', () => {
    const first = (count: number) => makePcap(foreign.records.slice(0, count))

    for (const [parameters, expected] of [
      ['&MaxPackets=7', () => first(7)],
      ['&MaxBytes=1000', () => first(12)],
      ['&TSResolution=usec', () => makePcap(foreign.records, { nanoseconds: false })],
    ] as const) {
      test(`${parameters} of a range and of a capture`, async () => {
        for (const answer of [await range(parameters), await single(parameters)]) {
          assert.deepEqual([answer.status, answer.headers['capfleet-ignored']], [200, undefined])
          const [got, wanted] = [readPcap(answer.body), readPcap(expected())]
          assert.deepEqual(recordLines(got.records), recordLines(wanted.records))
        }
        assert.ok(foreign.asked.every((target) => !/MaxPackets|MaxBytes|TSResolution/.test(target)))
      })
    }

    test('TSMax, of which it may count packets that do not belong to the range', async () => {
      const tsMax = `&TSMax=${5n * API_STEP_NS}`
      for (const answer of [await single(tsMax), await range(tsMax)])
        assert.deepEqual([answer.status, answer.body], [200, first(5)])
      assert.ok(foreign.asked.every((target) => !target.includes('TSMax')))
    })

    for (const ignores of [[], ['Slice']] as const)
      test(`Slice, also if it ignores ${ignores.join() || 'nothing'}`, async () => {
        foreign.behaviour = { ignores }
        other.behaviour = { ignores }
        const sliced = (records: readonly PcapRecord[]) =>
          recordLines(records.map((record) => ({ ...record, captured: record.captured.subarray(0, 7) })))
        const both = await get(`/api/v1/pcap/timerange?${RANGE}&Device=foreign,other&Slice=7`)
        const inOrder = foreign.records.flatMap((record, index) => [
          record,
          other.records[index] as PcapRecord,
        ])
        for (const [answer, records] of [
          [await range('&Slice=7'), foreign.records],
          [await single('&Slice=7'), foreign.records],
          [await single('&Slice=7&MaxBytes=1000'), foreign.records.slice(0, 42)],
          [both, inOrder],
        ] as const) {
          assert.equal(answer.status, 200)
          const { snaplen, records: got } = readPcap(answer.body)
          assert.deepEqual([snaplen, recordLines(got)], [7, sliced(records)])
        }
      })

    test('parameters that it ignores according to the configuration', async () => {
      const poorRange = (parameters: string) =>
        get(`/devices/poor/api/v1/pcap/timerange?${RANGE}${parameters}`)
      const packed = await poorRange('&Compression=fast')
      assert.deepEqual(gunzipSync(packed.body), makePcap(poor.records))
      assert.ok(poor.asked.every((target) => !/Compression/.test(target)))
      for (const [parameters, param] of [
        ['&FilterBPF=odd', 'FilterBPF'],
        ['&TSMode=vendorA7280_eth64', 'TSMode'],
      ]) {
        const refused = await poorRange(String(parameters))
        assert.deepEqual([refused.status, refused.json().param], [400, param])
      }
    })
  })

  for (const [path, parameter] of [
    [`timerange?${RANGE}&FilterRE=GET`, 'FilterRE'],
    [`timerange?${RANGE}&FilterAddresses=10.0.0.1`, 'FilterAddresses'],
    [`timerange?${RANGE}&Follow=true`, 'Follow'],
    [`splittime?StreamName=${API_CAPTURE}&Start=1&Stop=2&FilterBPF=ip&FilterBPFDecap=true`, 'FilterBPFDecap'],
  ] as const)
    test(`is not asked for ${parameter}, which neither it nor the gateway could do`, async () => {
      const refused = await get(`/devices/foreign/api/v1/pcap/${path}`)
      const { code, param, detail, devices } = refused.json() as Record<string, unknown>
      assert.deepEqual([refused.status, code, param, devices], [400, 'bad-parameter', parameter, ['foreign']])
      assert.match(String(detail), /^device foreign is a third-party device and does not support/)
      const order = await get(`/api/v1/pcap/${path}&Device=foreign`)
      assert.equal(order.status, 400)
      assert.deepEqual(foreign.asked, [])
    })

  test('is heard in its own words where it refuses a download', async () => {
    foreign.refusal = { status: 400, text: 'syntax error in\nfilter expression\n' }
    const bad = await range('&FilterBPF=odd')
    assert.deepEqual([bad.status, bad.json().code], [400, 'bad-parameter'])
    assert.match(String(bad.json().detail), /^device foreign rejected .*: syntax error in filter expression$/)
    foreign.refusal = { status: 404, text: 'no such capture' }
    foreign.captures = []
    const [unknown, path] = [await single(), await range()]
    assert.deepEqual([unknown.status, unknown.json().code], [404, 'unknown-capture'])
    assert.deepEqual([path.status, path.json().code], [502, 'device-protocol'], 'a range names no capture')
    foreign.refusal = { status: 400, text: '<html>no</html>' }
    assert.equal((await range()).status, 502, 'markup is no word')
  })

  test('does not reveal the credentials of the gateway to callers', async () => {
    const login = Buffer.from(`gateway:${foreign.password}`).toString('base64')
    foreign.refusal = { status: 400, text: `bad request: Basic ${login}, ${foreign.password}` }
    const { body } = await range()
    assert.match(body.toString(), /bad request: Basic \[secret\], \[secret\]/)
  })

  describe('in a merge with OnError=partial', () => {
    const merge = () => get(`/api/v1/pcap/timerange?${RANGE}&Device=foreign,other&OnError=partial&Wait=600`)

    test('is left out when it refuses in its own words', async () => {
      foreign.refusal = { status: 400, text: 'no' }
      const { status, body } = await merge()
      assert.deepEqual([status, readPcap(body).records.length], [200, PACKETS])
    })

    test('is waited for when it has no stream left, and does not say so plainly', async () => {
      foreign.behaviour = { streamsMax: 1, limit: 'text', held: foreign.until(() => foreign.refused > 0) }
      const alone = range('&Wait=600')
      await foreign.until(() => foreign.running === 1)
      const { status, body } = await merge()
      assert.deepEqual([status, readPcap(body).records.length], [200, 2 * PACKETS])
      assert.equal((await alone).status, 200)
    })
  })

  test('that gives other packets when it is asked again is found out', async () => {
    foreign.breaksLeft = 1
    foreign.swapsAfterBreak = true
    const both = get(`/api/v1/pcap/timerange?${RANGE}&Device=foreign,other`)
    await assert.rejects(both, 'the download is cut')
  })

  for (const endsByClose of ['whole', 'half'] as const) {
    test(`that closes the connection after its ${endsByClose} answer is not called complete`, async () => {
      foreign.behaviour = { endsByClose }
      for (const devices of ['foreign', 'foreign,other']) {
        const { status, headers, trailers } = await get(`/api/v1/pcap/timerange?${RANGE}&Device=${devices}`)
        assert.equal(status, 200)
        assert.deepEqual([trailers['capfleet-complete'], trailers['capfleet-status']], ['0', 'unverified'])
        const receipt = await receiptOf(headers)
        assert.equal(receipt.status, 'unverified')
        assert.deepEqual(
          receipt.devices.map((device) => device.status),
          ['unverified', 'complete'].slice(0, devices.split(',').length),
        )
      }
    })
  }

  for (const breaks of [0, 2]) {
    test(`with microseconds is merged with one that has nanoseconds, when it breaks off ${breaks} times`, async () => {
      const both = (parameters = '') =>
        get(`/api/v1/pcap/timerange?${RANGE}&Device=foreign,other${parameters}`)
      const [fine, coarse] = [(await both()).body, (await both('&TSResolution=usec')).body]
      foreign.behaviour = { isCoarse: true }
      foreign.breaksLeft = breaks
      assert.ok((await both()).body.equals(fine), 'all packets have times of whole microseconds')
      foreign.breaksLeft = breaks
      assert.ok((await both('&TSResolution=usec')).body.equals(coarse))
      other.behaviour = { isCoarse: true }
      foreign.breaksLeft = breaks
      assert.ok((await both()).body.equals(coarse), 'no device has nanoseconds')
    })
  }

  for (const breaks of [0, 2]) {
    for (const isCoarse of [false, true]) {
      const resolution = isCoarse ? 'microseconds' : 'nanoseconds'
      test(`that is big-endian, with ${resolution}, is merged as others are, when it breaks off ${breaks} times`, async () => {
        const both = (parameters = '') =>
          get(`/api/v1/pcap/timerange?${RANGE}&Device=foreign,other${parameters}`)
        const expected = (await both()).body
        const limited = (await both('&MaxPackets=31')).body
        foreign.behaviour = { isBigEndian: true, isCoarse }
        foreign.breaksLeft = breaks
        assert.ok((await both()).body.equals(expected))
        foreign.breaksLeft = breaks
        assert.ok((await both('&MaxPackets=31')).body.equals(limited))
        assert.ok(
          (await range('&MaxPackets=7')).body.equals(
            makePcap(foreign.records.slice(0, 7), { nanoseconds: !isCoarse }),
          ),
        )
      })
    }
  }

  test('that is big-endian is relayed as it is, with the same padding, cuts and Resume as others', async () => {
    const expected = makePcap(foreign.records, { isBigEndian: true })
    foreign.behaviour = { isBigEndian: true, zeros: 100_000 }
    const { status, body, trailers } = await range()
    assert.deepEqual([status, body.equals(expected), trailers['capfleet-complete']], [200, true, '1'])
    foreign.behaviour = { isBigEndian: true }
    foreign.breaksLeft = 1
    const { id, got } = await cutRange()
    assert.ok(got.length > 0 && got.length < expected.length)
    const rest = await get(`/devices/foreign/api/v1/pcap/timerange?Resume=${id}&Offset=${got.length}`)
    assert.equal(rest.status, 200)
    assert.ok(Buffer.concat([got, rest.body]).equals(expected))
  })

  describe('that sends packets late', () => {
    const both = (parameters = '') => get(`/api/v1/pcap/timerange?${RANGE}&Device=foreign,other${parameters}`)
    /** Every tenth packet comes that many packets late. */
    const lateBy =
      (packets: number) =>
      (records: readonly PcapRecord[]): readonly PcapRecord[] =>
        records
          .map((record, index) => ({ record, at: index % 10 === 3 ? index + packets + 0.5 : index }))
          .toSorted((a, b) => a.at - b.at)
          .map(({ record }) => record)
    /** One second of its packets. */
    const SECOND = Number(1_000_000_000n / API_STEP_NS)

    for (const breaks of [0, 1, 3])
      test(`up to a second is sorted in a merge, when it breaks off ${breaks} times`, async () => {
        const [expected, limited] = [(await both()).body, (await both('&MaxPackets=111')).body]
        foreign.behaviour = { order: lateBy(SECOND) }
        foreign.breaksLeft = breaks
        const { status, body, headers, trailers } = await both()
        assert.deepEqual([status, body.equals(expected)], [200, true])
        assert.equal(trailers['capfleet-late-packets'], '0')
        const [late] = (await receiptOf(headers)).devices
        assert.deepEqual([late?.outOfOrder, late?.retries, late?.packets], [0, breaks, String(PACKETS)])
        foreign.breaksLeft = breaks
        assert.ok((await both('&MaxPackets=111')).body.equals(limited))
      })

    test('is sorted in a merge also while its kind is not known', async () => {
      const expected = (await both()).body
      foreign.behaviour = { missing: /./ }
      await using fresh = await startTempGateway([foreign, other], gateway.config.redis.url)
      foreign.behaviour = { order: lateBy(SECOND), missing: /^(?!.*\/pcap\/)/ }
      for (const breaks of [0, 1]) {
        foreign.breaksLeft = breaks
        const url = `${fresh.url}/api/v1/pcap/timerange?${RANGE}&Device=foreign,other`
        const { status, body } = await httpGet(url, { headers: { ...fresh.as.user, TE: 'trailers' } })
        assert.deepEqual([status, body.equals(expected)], [200, true])
      }
    })

    test('does not lose packets that follow one later than TSMax', async () => {
      const tsMax = `&TSMax=${50n * API_STEP_NS}`
      const expected = (await both(tsMax)).body
      foreign.behaviour = { order: lateBy(SECOND / 2) }
      assert.ok((await both(tsMax)).body.equals(expected))
    })

    test('later than that is passed on and counted', async () => {
      foreign.behaviour = { order: lateBy(SECOND + 2) }
      const { body, headers, trailers } = await both()
      const late = PACKETS / 10 - 2
      assert.deepEqual(
        recordLines(readPcap(body).records).toSorted(),
        recordLines([...foreign.records, ...other.records]).toSorted(),
      )
      assert.equal(trailers['capfleet-late-packets'], String(late))
      const { devices } = await receiptOf(headers)
      assert.deepEqual(
        devices.map(({ outOfOrder }) => outOfOrder),
        [late, 0],
      )
    })

    test('is relayed as it comes', async () => {
      foreign.behaviour = { order: lateBy(SECOND) }
      assert.ok((await range()).body.equals(makePcap(lateBy(SECOND)(foreign.records))))
    })
  })

  test('whose answers end with the connection has nothing to verify after a limit', async () => {
    foreign.behaviour = { endsByClose: 'whole' }
    const { status, body, trailers } = await range('&MaxPackets=7')
    assert.deepEqual([status, readPcap(body).records.length], [200, 7])
    assert.deepEqual([trailers['capfleet-complete'], trailers['capfleet-status']], ['1', 'truncated'])
  })

  test('that fills its answers up with zeros invents no packets', async () => {
    const both = () => get(`/api/v1/pcap/timerange?${RANGE}&Device=foreign,other`)
    const merged = (await both()).body
    foreign.behaviour = { zeros: 100_000 }
    const { status, body, trailers } = await range()
    assert.deepEqual([status, body.equals(whole()), trailers['capfleet-complete']], [200, true, '1'])
    assert.ok((await both()).body.equals(merged))
    // A chunk that has begun cannot become shorter: the download is cut, and none of the zeros counts as a packet.
    foreign.behaviour = { zeros: 100_000, isChunked: true }
    const { id, got } = await cutRange()
    assert.ok(whole().equals(Buffer.concat([got, whole().subarray(got.length)])), 'what came is its start')
    const receipt = await receiptOf({ 'capfleet-request-id': id })
    assert.match(receipt.error?.detail ?? '', /^device foreign sent zeros/)
    assert.ok((await both()).body.equals(merged))
  })

  test('gets local times with their unit', async () => {
    const times = 'TSBegin=20261102_090000&TSEnd=20261102_100000&TSUnit=YYYYMMDD_HHMMSS'
    const { status, body } = await get(`/devices/foreign/api/v1/pcap/timerange?${times}`)
    assert.deepEqual([status, body.equals(whole())], [200, true])
    assert.match(foreign.asked[0] ?? '', /TSUnit=YYYYMMDD_HHMMSS/)
  })

  test('filters also where the caller came by the legacy path, on which it would not', async () => {
    const { status, body } = await get(`/devices/foreign/pcap/timerange?${RANGE}&FilterBPF=odd`)
    assert.equal(status, 200)
    assert.equal(readPcap(body).records.length, PACKETS / 2)
    assert.match(foreign.asked[0] ?? '', /^\/api\/v1\/pcap\/timerange\?/)
  })

  test('that breaks off in a merge is asked again, and what it delivered is left out', async () => {
    const both = () => get(`/api/v1/pcap/timerange?${RANGE}&Device=foreign,other`)
    const expected = (await both()).body
    foreign.breaksLeft = 2
    const { status, body, headers } = await both()
    assert.deepEqual([status, body.equals(expected)], [200, true])
    const receipt = await receiptOf(headers)
    assert.deepEqual(
      receipt.devices.map(({ device, retries }) => [device, retries]),
      [
        ['foreign', 2],
        ['other', 0],
      ],
    )
  })

  test('that breaks off is continued by Resume, from the beginning', async () => {
    foreign.breaksLeft = 1
    const { id, got } = await cutRange()
    assert.ok(got.length > 0 && got.length < whole().length)
    const rest = await get(`/devices/foreign/api/v1/pcap/timerange?Resume=${id}&Offset=${got.length}`)
    assert.equal(rest.status, 200)
    assert.ok(Buffer.concat([got, rest.body]).equals(whole()))
    assert.ok(foreign.asked.every((target) => !target.includes('After=')))
  })
})
