// The gateway over simulated devices: routes, roles, downloads, and every way in which a download can end early.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import type { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap } from '../../support/devices/fake-fleet.ts'
import { eventually } from '../../support/eventually.ts'
import { httpOpen } from '../../support/http-get.ts'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { pause } from '../../support/pause.ts'
import { gatewayWorld } from '../../support/processes/gateway-world.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { DEVICE_PASSWORD } from '../../support/suite-secrets.ts'

const run = promisify(execFile)
const PACKETS = 2_000
const TIMERANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`
/** The time that an impatient gateway gives a device: longer than a healthy one ever takes. */
const DEVICE_LIMIT_MS = 5_000

describe('the gateway', () => {
  const world = gatewayWorld(PACKETS, {
    downloads: { retryPauseMs: 10 },
    health: { failuresMax: 1_000_000, intervalS: 0.5 },
  })
  const { fleet } = world

  const get = (path: string, headers: Record<string, string> = {}, method = 'GET', { url } = world.gateway) =>
    fetch(url + path, {
      method,
      headers: { ...world.gateway.as.user, ...headers },
      redirect: 'manual',
    })
  /** A gateway for devices that never answer, in front of the same devices. */
  const impatientGateway = () =>
    startTempGateway(fleet, world.redis.url, {
      downloads: {
        startTimeoutMs: DEVICE_LIMIT_MS,
        idleTimeoutMs: DEVICE_LIMIT_MS,
        retryPauseMs: 10,
      },
    })
  const first = (): FakeDevice => fleet[0] as FakeDevice
  const asBuffer = async (answer: Response) => Buffer.from(await answer.arrayBuffer())

  async function problemOf(answer: Response): Promise<Record<string, unknown>> {
    assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/)
    return (await answer.json()) as Record<string, unknown>
  }

  /** Waits until no lease is left and no device has a reader. */
  async function untilIdle(): Promise<void> {
    for (const device of fleet) await device.until(() => device.readers === 0)
    await world.redis.until(async () => (await world.redis.leftovers('capfleet')).length === 0)
  }

  function sortedUnion(devices = [0, 1, 2]): string[] {
    const all = devices.flatMap((index) => readPcap(fleetPcap(index, PACKETS)).records)
    return recordLines(all.toSorted((a, b) => (a.ns < b.ns ? -1 : 1)))
  }

  describe('downloads', () => {
    test('merges all devices in the order of time', async () => {
      const answer = await get(TIMERANGE)
      assert.equal(answer.status, 200)
      assert.deepEqual(recordLines(readPcap(await asBuffer(answer)).records), sortedUnion())
      assert.equal(answer.headers.get('content-type'), 'application/vnd.tcpdump.pcap')
      assert.match(
        answer.headers.get('content-disposition') ?? '',
        /^attachment; filename="fleet_[\dTZ.]+-[\dTZ.]+\.pcap"$/,
      )
      assert.equal(answer.headers.get('cache-control'), 'no-store')
      assert.equal(answer.headers.get('x-accel-buffering'), 'no')
      assert.equal(answer.headers.get('capfleet-devices'), 'd0, d1, d2')
      assert.equal(answer.headers.get('content-encoding'), null)
      assert.match(answer.headers.get('capfleet-request-id') ?? '', /^[0-9a-f-]{36}$/)
      await untilIdle()
    })

    for (const [compression, unpack] of [
      ['fast', gunzipSync],
      ['9', gunzipSync],
      ['zstd', unzstd],
      ['zstd_ultra', unzstd],
    ] as const) {
      test(`compresses a merge once, at the end: ${compression}`, async () => {
        // zstd_ultra takes milliseconds for each packet.
        const most = compression === 'zstd_ultra' ? 300 : 3 * PACKETS
        const answer = await get(`${TIMERANGE}&Compression=${compression}&MaxPackets=${most}`)
        const lines = recordLines(readPcap(unpack(await asBuffer(answer))).records)
        assert.deepEqual(lines, sortedUnion().slice(0, most))
        assert.ok(fleet.every((device) => device.requests.every(({ url }) => !url.includes('Compression'))))
      })
    }

    test('chooses devices by name, glob and header, and refuses unknown ones with the nearest names', async () => {
      for (const [query, headers, devices] of [
        ['&Device=d2,d0', {}, [0, 2]],
        ['&Device=d[1]', {}, undefined],
        ['&Device=d%3F', {}, [0, 1, 2]],
        ['', { 'Capfleet-Device': 'd1,*2' }, [1, 2]],
        ['&Device=d0&Device=d1', {}, undefined],
      ] as const) {
        const answer = await get(TIMERANGE + query, headers)
        if (devices === undefined) assert.ok([400, 404].includes(answer.status), query)
        else
          assert.deepEqual(recordLines(readPcap(await asBuffer(answer)).records), sortedUnion([...devices]))
      }
      const problem = await problemOf(await get(`${TIMERANGE}&Device=dd1`))
      assert.equal(problem.code, 'unknown-device')
      assert.match(String(problem.detail), /did you mean .*d1/)
    })

    test('passes the bytes of one device on as they are, with its headers and its packet count', async () => {
      const answer = await get(`/devices/d1${TIMERANGE}&Slice=64&FilterBPF=tcp+port+443&After=24&Odd=1`)
      assert.ok((await asBuffer(answer)).equals(fleetPcap(1, PACKETS)))
      assert.equal(answer.headers.get('capfleet-damaged-segments'), '0')
      assert.equal(answer.headers.get('capfleet-ignored'), 'After, Odd')
      const [checked, asked] = (fleet[1] as FakeDevice).requests
      assert.match(checked?.url ?? '', /^\/api\/v1\/pcap\/estimate\?/, 'the filter is checked first')
      assert.match(
        asked?.url ?? '',
        /^\/api\/v1\/pcap\/timerange\?TSBegin=\d+&TSEnd=\d+&TSUnit=nanos&FilterBPF=tcp%20port%20443&Slice=64$/,
      )
      assert.deepEqual(sortedHeaders(asked?.headers), [
        'authorization',
        'capfleet-caller',
        'connection',
        'host',
        'te',
        'traceparent',
        'user-agent',
      ])
    })

    test('distinguishes its callers to devices by a label that is not a name and that no one can choose', async () => {
      const ways = [
        `/devices/d0${TIMERANGE}&FilterBPF=tcp`,
        `/devices/d0/api/v1/pcap/estimate?${FLEET_RANGE}`,
        `/v1/estimate?${FLEET_RANGE}&Device=d0`,
      ]
      const labelsOf = async (user: 'user' | 'full'): Promise<(string | string[] | undefined)[]> => {
        first().requests.length = 0
        for (const path of ways) {
          const headers = { ...world.gateway.as[user], 'Capfleet-Caller': 'mine' }
          await (await get(path, headers)).arrayBuffer()
        }
        return first().requests.map(({ headers }) => headers['capfleet-caller'])
      }
      const [user, full] = [await labelsOf('user'), await labelsOf('full')]
      assert.equal(user.length, ways.length + 1, 'the filter is checked first')
      assert.deepEqual([new Set(user).size, new Set(full).size], [1, 1])
      assert.match(String(user[0]), /^[0-9a-f]{16}$/)
      assert.notEqual(user[0], full[0])
    })

    test('takes no stream for a filter that waits for a compiler', async () => {
      first().behaviour = {
        estimateProblem: { status: 503, body: { code: 'compiler-busy', detail: 'all busy' } },
      }
      const answer = await get(`/devices/d0${TIMERANGE}&FilterBPF=tcp`)
      assert.equal(answer.status, 503)
      assert.ok(Number(answer.headers.get('retry-after')) >= 1)
      assert.equal((await problemOf(answer)).code, 'compiler-busy')
      assert.equal(first().requests.length, 1, 'the check alone')
    })

    test('sends completion trailers to a client that asked for them', async () => {
      for (const [path, packets] of [
        [TIMERANGE, String(3 * PACKETS)],
        [`/devices/d0${TIMERANGE}`, '7'],
      ] as const) {
        const { trailers, bytes } = await getWithTrailers(path)
        assert.equal(trailers['capfleet-complete'], '1')
        assert.equal(trailers['capfleet-packets'], packets)
        assert.equal(trailers['capfleet-bytes'], String(bytes))
      }
    })

    test('serves an HTTP/1.0 client, without trailers and chunks', async () => {
      const { stdout } = await run(
        'curl',
        [
          '-fsS0',
          '-i',
          '-H',
          'TE: trailers',
          '-H',
          `authorization: ${world.gateway.as.user.authorization}`,
          world.gateway.url + TIMERANGE,
        ],
        { encoding: 'buffer', maxBuffer: 1e9 },
      )
      const end = stdout.indexOf('\r\n\r\n')
      const head = stdout.subarray(0, end).toString()
      assert.doesNotMatch(head, /transfer-encoding|^trailer/im)
      assert.deepEqual(recordLines(readPcap(stdout.subarray(end + 4)).records), sortedUnion())
    })

    test('answers HEAD with the headers, after asking the devices by HEAD and without taking a lease', async () => {
      for (const path of [TIMERANGE, `/devices/d0${TIMERANGE}&Compression=zstd`]) {
        const answer = await get(path, {}, 'HEAD')
        assert.equal(answer.status, 200)
        assert.match(answer.headers.get('content-disposition') ?? '', /\.pcap(\.zst)?"/)
      }
      const asked = fleet.flatMap(({ requests }) => requests.map(({ method }) => method))
      assert.deepEqual(asked, ['HEAD', 'HEAD', 'HEAD', 'HEAD'])
      await untilIdle()
    })

    for (const status of [400, 404, 409, 410, 503]) {
      test(`HEAD is ${status} when a device says so, and so says its Retry-After`, async () => {
        first().behaviour = { problem: { status, body: {} } }
        for (const path of [TIMERANGE, `/devices/d0${TIMERANGE}`]) {
          const answer = await get(path, {}, 'HEAD')
          assert.equal(answer.status, status)
          assert.equal(answer.headers.get('retry-after'), status === 503 ? '1' : null)
        }
      })
    }

    test('HEAD is 502 of a device that fails, names it with OnError=partial, and believes one without HEAD', async () => {
      first().behaviour = { problem: { status: 500, body: {} } }
      assert.equal((await get(TIMERANGE, {}, 'HEAD')).status, 502)
      const partial = await get(`${TIMERANGE}&OnError=partial`, {}, 'HEAD')
      assert.equal(partial.status, 200)
      assert.equal(partial.headers.get('capfleet-devices'), 'd1, d2')
      assert.match(partial.headers.get('capfleet-missing') ?? '', /^d0;from=\d+;to=\d+$/)
      assert.equal((await get(`/devices/d0${TIMERANGE}&OnError=partial`, {}, 'HEAD')).status, 502)
      first().behaviour = { knowsNoHead: true }
      assert.equal((await get(TIMERANGE, {}, 'HEAD')).status, 200)
    })

    test('refuses bad parameters before any device gets them', async () => {
      for (const query of [
        'TSBegin=x&TSEnd=1',
        `${FLEET_RANGE}&Slice=0`,
        `${FLEET_RANGE}&Compression=lz4`,
        `${FLEET_RANGE}&x=%zz`,
      ]) {
        for (const prefix of ['', '/devices/d0']) {
          const answer = await get(`${prefix}/api/v1/pcap/timerange?${query}`)
          assert.equal(answer.status, 400, query)
          await answer.text()
        }
      }
      assert.ok(fleet.every((device) => device.requests.length === 0))
    })

    test('finds the one device that holds a capture', async () => {
      const [d0, d1] = fleet as [FakeDevice, FakeDevice]
      d0.captures = [{ StreamName: 'lab_20260101_1000' }, { StreamName: 'both_20260101_1000' }]
      d1.captures = [{ StreamName: 'core_20260101_1000' }, { StreamName: 'both_20260102_1000' }]
      const ask = (name: string, more = '') => get(`/api/v1/pcap/single?StreamName=${name}${more}`)
      assert.ok((await asBuffer(await ask('core_20260101_1000'))).equals(fleetPcap(1, PACKETS)))
      assert.ok((await asBuffer(await ask('lab'))).equals(fleetPcap(0, PACKETS)))
      const ambiguous = await ask('both')
      assert.equal(ambiguous.status, 409)
      assert.deepEqual((await problemOf(ambiguous)).candidates, ['d0', 'd1'])
      assert.ok((await asBuffer(await ask('both', '&Device=d1'))).equals(fleetPcap(1, PACKETS)))
      const unknown = await problemOf(await ask('cora_20260101_1000'))
      assert.deepEqual([unknown.status, unknown.code], [404, 'unknown-capture'])
      assert.match(String(unknown.detail), /core_20260101_1000/)
      await untilIdle()
    })

    test('says of a capture that has aged out what its device says', async () => {
      const detail = 'gone_20260101_1000 was removed to make room; it held packets from 5 to 9 ns'
      ;(fleet[2] as FakeDevice).behaviour = {
        estimateProblem: { status: 410, body: { code: 'aged-out', detail } },
      }
      for (const path of [
        '/api/v1/pcap/single?',
        '/api/v1/pcap/splittime?Start=5&Stop=9&',
        '/stream/ssize?',
      ]) {
        const answer = await get(`${path}StreamName=gone_20260101_1000`)
        const problem = await problemOf(answer)
        assert.deepEqual(
          [answer.status, problem.code, problem.detail, problem.devices],
          [410, 'aged-out', detail, ['d2']],
        )
        assert.equal((await get(`${path}StreamName=gone_20260101_1000`, {}, 'HEAD')).status, 410)
      }
      const others = await get('/api/v1/pcap/single?StreamName=gone_20260101_1000&Device=d0,d1')
      assert.deepEqual([others.status, (await problemOf(others)).code], [404, 'unknown-capture'])
    })

    test('waits for a free stream, then says its place in line', async () => {
      first().behaviour = { hangAfterBytes: 1_000 }
      const leave = new AbortController()
      const holders = await Promise.all(
        [1, 2, 3, 4].map(() =>
          fetch(`${world.gateway.url}/devices/d0${TIMERANGE}`, {
            headers: world.gateway.as.user,
            signal: leave.signal,
          }),
        ),
      )
      const refused = await get(`/devices/d0${TIMERANGE}&Wait=0`)
      assert.equal(refused.status, 503)
      assert.equal(refused.headers.get('capfleet-queue-position'), '1')
      assert.ok(Number(refused.headers.get('retry-after')) > 0)
      assert.equal((await problemOf(refused)).code, 'queue-timeout')
      const waiting = get(`/devices/d0${TIMERANGE}`)
      await world.redis.until(async () => {
        const queue = (await (await get('/v1/queue')).json()) as { requests: { state: string }[] }
        return queue.requests.some((row) => row.state === 'waiting')
      })
      first().behaviour = {}
      leave.abort()
      await Promise.allSettled(holders.map((holder) => holder.arrayBuffer()))
      assert.ok((await asBuffer(await waiting)).equals(fleetPcap(0, PACKETS)))
      assert.equal(first().overruns, 0)
      await untilIdle()
    })

    test('below a device leave local times to the device, whose zone they mean', async () => {
      const path = '/devices/d0/api/v1/pcap/timerange?TSBegin=20261120_093000&TSEnd=20261120_100000'
      await asBuffer(await get(path))
      const asked = first().requests.at(-1)?.url
      assert.equal(
        asked,
        '/api/v1/pcap/timerange?TSBegin=20261120_093000&TSEnd=20261120_100000&TSUnit=YYYYMMDD_HHMMSS',
      )
    })

    test('name the zone that local times were read in, the own one or that of the device', async () => {
      const range = 'timerange?TSBegin=20261120_093000&TSEnd=20261120_100000'
      for (const device of fleet) device.answers.set('/api/v1/pcap/estimate', { Packets: '1', Bytes: '100' })
      first().behaviour = { headers: { 'Capfleet-Time-Zone': 'Asia/Tokyo' } }
      for (const [path, zone] of [
        [`/api/v1/pcap/${range}`, 'UTC'],
        [`/api/v1/pcap/${range}&TSZone=Berlin`, null],
        [`/v1/estimate?${range.split('?')[1]}`, 'UTC'],
        [`/devices/d0/api/v1/pcap/${range}`, 'Asia/Tokyo'],
        [`/devices/d1/api/v1/pcap/${range}`, null],
      ] as const) {
        const answer = await get(path)
        assert.equal(answer.headers.get('capfleet-time-zone'), zone, path)
        await answer.arrayBuffer()
      }
    })

    test('below a device leave values of TSMode to it, and have it judge them before they wait', async () => {
      const path = `/devices/d0${TIMERANGE}&TSMode=footer`
      assert.equal((await get(path)).status, 200)
      const [judged, asked] = first().requests.map(({ url }) => url)
      assert.match(judged ?? '', /^\/api\/v1\/pcap\/estimate\?.*&TSMode=footer$/)
      assert.match(asked ?? '', /^\/api\/v1\/pcap\/timerange\?.*&TSMode=footer$/)
      first().requests.length = 0
      const body = { code: 'bad-parameter', detail: 'TSMode must be one of nic, foot', param: 'TSMode' }
      first().behaviour = { estimateProblem: { status: 400, body } }
      const refused = await get(path)
      const problem = await problemOf(refused)
      assert.deepEqual([refused.status, problem.detail, problem.param], [400, body.detail, 'TSMode'])
      assert.equal(first().requests.length, 1, 'no stream was asked for')
      assert.equal(
        (await get(`${TIMERANGE}&TSMode=footer&Device=d0`)).status,
        400,
        'the fleet has its own words',
      )
    })

    test('asks again if a client outside the fleet holds the slot that a lease was for', async () => {
      first().outsiders = 4
      const answer = get(TIMERANGE)
      await first().until(() => first().requests.length >= 2)
      first().outsiders = 0
      assert.deepEqual(recordLines(readPcap(await asBuffer(await answer)).records), sortedUnion())
      first().outsiders = 4
      const refused = await get(`${TIMERANGE}&Wait=0`)
      const problem = await problemOf(refused)
      assert.deepEqual(
        [refused.status, problem.code, problem.devices],
        [503, 'download-slots-exhausted', ['d0']],
      )
      await untilIdle()
    })
  })

  describe('failures before the first byte', () => {
    test("passes a device's own complaint on unchanged and names the device", async () => {
      first().behaviour = {
        problem: {
          status: 400,
          body: { code: 'bad-bpf', detail: "can't parse filter", param: 'FilterBPF', position: 3 },
        },
      }
      const answer = await get(`${TIMERANGE}&FilterBPF=x`)
      const problem = await problemOf(answer)
      assert.equal(answer.status, 400)
      assert.deepEqual(
        [problem.code, problem.detail, problem.param, problem.position, problem.devices],
        ['bad-bpf', "can't parse filter", 'FilterBPF', 3, ['d0']],
      )
      await untilIdle()
    })

    for (const [what, behaviour, status, code] of [
      ['does not speak PCAP', { body: Buffer.alloc(4_000, 'x') }, 502, 'device-protocol'],
      ['ends inside the PCAP header', { body: Buffer.alloc(10) }, 502, 'device-protocol'],
      ['says nothing', { silent: true }, 504, 'device-timeout'],
      ['stops inside the PCAP header', { hangAfterBytes: 10 }, 504, 'device-timeout'],
      ['breaks off inside the PCAP header', { dieAfterBytes: 10 }, 502, 'device-unreachable'],
      ['redirects', { problem: { status: 302, body: {} } }, 502, 'device-protocol'],
      ['fails by itself', { problem: { status: 500, body: {} } }, 502, 'device-protocol'],
      ['refuses our credentials', { problem: { status: 401, body: {} } }, 502, 'device-rejected'],
    ] as const) {
      test(`a device that ${what}: ${status} naming it, leases back`, async () => {
        await using impatient = status === 504 ? await impatientGateway() : undefined
        first().behaviour = behaviour
        const paths = [TIMERANGE, `/devices/d0${TIMERANGE}`]
        const answers = await Promise.all(paths.map((path) => get(path, {}, 'GET', impatient)))
        for (const answer of answers) {
          const problem = await problemOf(answer)
          assert.deepEqual([answer.status, problem.code, problem.devices], [status, code, ['d0']])
          assert.match(String(problem.detail), /\bd0\b/)
        }
        await untilIdle()
      })
    }

    test('devices of different link types cannot be merged', async () => {
      first().behaviour = { body: fleetPcap(0, 3, 113) }
      const answer = await get(TIMERANGE)
      assert.deepEqual([answer.status, (await problemOf(answer)).code], [409, 'mixed-link-type'])
      await untilIdle()
    })
  })

  describe('failures after the first byte', () => {
    const bytes = fleetPcap(0, PACKETS).length
    for (const [what, behaviour] of [
      ['dies', { dieAfterBytes: bytes - 5_000 }],
      ['dies on a record boundary', { dieAfterBytes: fleetPcap(0, PACKETS - 7).length }],
      ['hangs', { hangAfterBytes: bytes - 5_000 }],
      ['ends without its completion trailer', { withoutCompletion: true }],
      ['sends fewer bytes than announced', { dieAfterBytes: bytes - 5_000, withLength: true }],
    ] as const) {
      test(`a device that ${what}: curl and tcpdump both see the cut`, async () => {
        await using impatient = what === 'hangs' ? await impatientGateway() : undefined
        first().behaviour = behaviour
        const paths = [`/devices/d0${TIMERANGE}`, TIMERANGE]
        const cases = paths.flatMap((path) => ['--http1.1', '--http1.0'].map((http) => ({ http, path })))
        await Promise.all(cases.map(({ http, path }) => assertVisibleCut(http, path, impatient)))
        await untilIdle()
      })
    }

    for (const compression of ['fast', 'zstd']) {
      test(`a cut in a merge with ${compression} leaves a damaged file`, async () => {
        first().behaviour = { dieAfterBytes: bytes - 5_000 }
        const unpack = compression === 'zstd' ? 'zstd -qdc' : 'gzip -dc'
        const { code, output } = await pipeTo(`${TIMERANGE}&Compression=${compression}`, '--http1.1', unpack)
        assert.ok(code !== 0, output)
        assert.match(output, /curl=(18|56)/)
      })
    }

    test('a client that leaves while it waits, at the start or in the middle gives everything back', async () => {
      first().behaviour = { pauseMs: 5, chunkBytes: 2_000 }
      for (const afterMs of [0, 1, 5, 20, 60]) {
        for (const path of [TIMERANGE, `/devices/d0${TIMERANGE}`, `${TIMERANGE}&Compression=zstd`]) {
          const leave = AbortSignal.timeout(afterMs)
          await fetch(world.gateway.url + path, { headers: world.gateway.as.user, signal: leave })
            .then((answer) => answer.arrayBuffer())
            .catch(() => undefined)
        }
      }
      await untilIdle()
      assert.ok(fleet.every((device) => device.overruns === 0))
    })

    test('a slow reader holds the devices back instead of filling memory', async () => {
      const big = fleetPcap(0, 60_000)
      first().behaviour = { body: big }
      const socket = connect(Number(new URL(world.gateway.url).port), '127.0.0.1')
      socket.write(
        `GET /devices/d0${TIMERANGE} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.gateway.as.user.authorization}\r\n\r\n`,
      )
      await once(socket, 'readable')
      await first().until(() => first().readers === 1)
      const heldBack = await Promise.race([
        first()
          .until(() => first().readers === 0)
          .then(() => false),
        pause(300, 'a relay that does not wait has sent all by then').then(() => true),
      ])
      assert.ok(heldBack, `all of ${big.length} bytes went out although nobody reads`)
      socket.destroy()
      await untilIdle()
    })

    /** Pipes curl into tcpdump; returns the exit status of both. */
    async function pipeTo(path: string, http: string, reader: string, { url } = world.gateway) {
      const script = `set -o pipefail; { curl -fsS ${http} -H "$AUTH" "$URL"; echo "curl=$?" >&2; } | ${reader} >/dev/null`
      const env = {
        ...process.env,
        AUTH: `authorization: ${world.gateway.as.user.authorization}`,
        URL: url + path,
      }
      try {
        const { stderr } = await run('bash', ['--norc', '-c', script], { env })
        return { code: 0, output: stderr }
      } catch (error) {
        const { code, stderr } = error as { code: number; stderr: string }
        return { code, output: stderr }
      }
    }

    async function assertVisibleCut(http: string, path: string, gateway?: TempGateway): Promise<void> {
      const { code, output } = await pipeTo(path, http, 'tcpdump -nr -', gateway)
      assert.equal(code, 1, `${http} ${path}: ${output}`)
      assert.match(output, /truncated/, `${http} ${path}`)
      assert.match(output, /curl=56/, `${http} ${path}`)
    }
  })

  describe('the rest of a device', () => {
    test("passes control calls through under the gateway's own credentials", async () => {
      const answer = await get('/devices/d0/api/v1/system/version?a=b//c&d=%2F', {
        cookie: 'a=b',
        'x-secret': '1',
      })
      assert.equal(answer.status, 200)
      assert.deepEqual(await answer.json(), { version: '1.2.3', device: 'd0', build: '' })
      assert.equal(answer.headers.get('set-cookie'), null)
      const [seen] = first().requests
      assert.equal(seen?.url, '/api/v1/system/version?a=b//c&d=%2F')
      assert.equal(seen?.headers.authorization, `Basic ${btoa(`gateway:${DEVICE_PASSWORD}`)}`)
      assert.equal(seen?.headers.cookie, undefined)
      assert.equal(seen?.headers['x-secret'], undefined)
    })

    test("never passes a caller's credentials to a device, even with Expect", async () => {
      const { statusCode } = await rawRequest('/devices/d0/api/v1/system/version', { expect: '100-continue' })
      assert.equal(statusCode, 200)
      await (await get('/stream/list')).text()
      await (await get(TIMERANGE)).arrayBuffer()
      const sent = fleet.flatMap((device) => device.requests.map(({ headers }) => JSON.stringify(headers)))
      assert.ok(sent.length >= 7)
      for (const headers of sent)
        assert.ok(!headers.includes(world.gateway.as.user.authorization.slice(6)), headers)
    })

    test('passes an error of the device on with its status', async () => {
      const answer = await get('/devices/d0/stream/nothing', world.gateway.as.full)
      assert.deepEqual([answer.status, (await problemOf(answer)).code], [404, 'not-found'])
    })

    for (const withLength of [true, false]) {
      test(`a device that dies inside its answer (${withLength ? 'Content-Length' : 'chunked'}) breaks the client's`, async () => {
        first().behaviour = { dieAfterBytes: 5, withLength }
        const answer = await get('/devices/d0/api/v1/system/version')
        await assert.rejects(answer.text())
      })
    }

    test('HEAD passes through', async () => {
      const answer = await get('/devices/d0/api/v1/system/version', {}, 'HEAD')
      assert.equal(answer.status, 200)
      assert.equal(first().requests[0]?.method, 'HEAD')
    })

    test('a client that leaves before the answer closes the device connection', async () => {
      first().behaviour = { silent: true }
      const leave = new AbortController()
      const asked = fetch(`${world.gateway.url}/devices/d0/api/v1/system/version`, {
        headers: world.gateway.as.user,
        signal: leave.signal,
      })
      await first().until(() => first().requests.length === 1)
      leave.abort()
      await assert.rejects(asked)
    })

    test('needs the role full for what changes a device, however the path is spelled', async () => {
      for (const path of [
        '/pcap/del?StreamName=x',
        '//pcap//del?StreamName=x',
        '/sysmaster/capture_start',
        '/sysmaster/capture_stop',
      ]) {
        assert.equal((await get(`/devices/d0${path}`)).status, 403)
        assert.equal(
          (await get(`/devices/d0${path}`, { ...world.gateway.as.full, 'sec-fetch-site': 'cross-site' }))
            .status,
          403,
        )
      }
      assert.equal(first().requests.length, 0)
      for (const path of [
        '/pcap/DEL',
        '/pcap/del/',
        '/pcap/%64el',
        '/x/%2e%2e/pcap/del',
        '/Sysmaster/capture_start',
        '/api/v1/pcap/Single',
        '/api/v1/pcap/timerange/',
      ]) {
        assert.equal((await rawRequest(`/devices/d0${path}`, {})).statusCode, 403, path)
        const answer = await rawRequest(`/devices/d0${path}`, world.gateway.as.full)
        assert.equal(answer.statusCode, 404, path)
      }
      assert.equal(first().requests.length, 0)
      assert.equal((await get('/devices/d0/pcap/del', world.gateway.as.full)).status, 404)
      assert.equal(first().requests.length, 1)
    })

    test('an unknown device is 404 with the nearest names', async () => {
      const problem = await problemOf(await get('/devices/d9/stream/list'))
      assert.deepEqual(
        [problem.status, problem.code, problem.candidates],
        [404, 'unknown-device', ['d0', 'd1', 'd2']],
      )
    })
  })

  describe('users', () => {
    test('401 with a challenge without credentials or with wrong ones, 403 below the role', async () => {
      const challenges = 'Basic realm="capfleet", charset="UTF-8", Bearer realm="capfleet"'
      for (const [headers, expected] of [
        [{}, challenges],
        [{ authorization: 'Bearer x' }, `${challenges}, error="invalid_token"`],
        [{ authorization: `Basic ${btoa('user:wrong')}` }, challenges],
      ] as const) {
        const answer = await fetch(world.gateway.url + TIMERANGE, { headers })
        assert.equal(answer.status, 401)
        assert.equal(answer.headers.get('www-authenticate'), expected)
        assert.equal((await problemOf(answer)).code, 'unauthenticated')
      }
      const answer = await get(TIMERANGE, world.gateway.as.viewer)
      assert.deepEqual([answer.status, (await problemOf(answer)).code], [403, 'insufficient-scope'])
      assert.equal((await get('/stream/list', world.gateway.as.viewer)).status, 200)
    })

    test('health and metrics are open to anyone; other methods are 405, other paths 404', async () => {
      for (const path of ['/livez', '/readyz', '/metrics'])
        assert.equal((await fetch(world.gateway.url + path)).status, 200)
      assert.equal((await get(TIMERANGE, {}, 'DELETE')).status, 405)
      assert.equal((await get('/nothing')).status, 404)
    })
  })

  describe('the fleet as a whole', () => {
    test('lists the captures of all devices, newest first, and those devices that do not answer', async () => {
      const [d0, d1, d2] = fleet as [FakeDevice, FakeDevice, FakeDevice]
      d0.captures = [{ StreamName: 'old', StartTS: '5', PCAP: '/api/v1/pcap/single?StreamName=old' }]
      d1.captures = [{ Path: 'new', StartTS: '1793610000000000001' }]
      d2.behaviour = { body: Buffer.from('<html>') }
      const answer = await get('/stream/list')
      const body = (await answer.json()) as {
        List: Record<string, unknown>[]
        Unreachable: Record<string, unknown>[]
      }
      assert.deepEqual(
        body.List.map(({ Device, StreamName }) => [Device, StreamName]),
        [
          ['d1', 'new'],
          ['d0', 'old'],
        ],
      )
      assert.equal(body.List[1]?.PCAP, '/devices/d0/api/v1/pcap/single?StreamName=old')
      assert.deepEqual(
        body.Unreachable.map(({ Device, code }) => [Device, code]),
        [['d2', 'device-protocol']],
      )
      assert.equal(answer.headers.get('capfleet-unreachable'), 'd2')
    })

    test('shows devices with their use, without credentials, and the queue', async () => {
      first().behaviour = { hangAfterBytes: 1_000 }
      const running = await httpOpen(`${world.gateway.url}/devices/d0${TIMERANGE}`, {
        headers: world.gateway.as.user,
      })
      let d0: Record<string, unknown> | undefined
      // The last probe may have seen what an earlier test did to the device.
      const isReachable = async (): Promise<boolean> => {
        const text = await (await get('/v1/devices')).text()
        assert.doesNotMatch(text, /c4n4ry|authorization/i)
        d0 = (JSON.parse(text) as { devices: Record<string, unknown>[] }).devices[0]
        return d0?.reachable === true
      }
      await eventually(isReachable, { message: 'the device is reachable' })
      assert.deepEqual(
        [d0?.name, d0?.reachable, d0?.version, d0?.slotsTotal, d0?.slotsUsed],
        ['d0', true, '1.2.3', 4, 1],
      )
      const { requests } = (await (await get('/v1/queue')).json()) as { requests: Record<string, unknown>[] }
      assert.deepEqual(
        requests.map(({ state, devices, user }) => [state, devices, user]),
        [['streaming', ['d0'], 'user']],
      )
      const metrics = await (await get('/metrics')).text()
      assert.match(metrics, /capfleet_lease_streams\{device="d0",state="used"\} 1/)
      running[Symbol.dispose]()
      await untilIdle()
    })
  })

  function sortedHeaders(headers: Readonly<Record<string, unknown>> = {}): string[] {
    return Object.keys(headers).sort()
  }

  async function rawRequest(path: string, headers: Record<string, string>) {
    const req = request(world.gateway.url, { path, headers: { ...world.gateway.as.user, ...headers } })
    req.end()
    const [res] = await once(req, 'response')
    res.resume()
    await once(res, 'end')
    return res as { statusCode: number }
  }

  async function getWithTrailers(path: string) {
    const req = request(world.gateway.url + path, { headers: { ...world.gateway.as.user, te: 'trailers' } })
    req.end()
    const [res] = await once(req, 'response')
    let bytes = 0
    for await (const chunk of res) bytes += chunk.length
    return { trailers: res.trailers as Record<string, string>, bytes }
  }
})

/** Node's own decoder stops after the first of several small frames. */
function unzstd(bytes: Buffer): Buffer {
  return execFileSync('zstd', ['-dc'], { input: bytes, maxBuffer: 1 << 28 })
}
