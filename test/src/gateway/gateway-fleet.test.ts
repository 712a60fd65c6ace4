// The gateway and its devices: control calls to many, devices that are down, credentials, a changed configuration.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, test } from 'node:test'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap, startFakeFleet } from '../../support/devices/fake-fleet.ts'
import { eventually } from '../../support/eventually.ts'
import { httpGet } from '../../support/http-get.ts'
import { gatewayWorld } from '../../support/processes/gateway-world.ts'
import { startTempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { DEVICE_PASSWORD } from '../../support/suite-secrets.ts'

const PACKETS = 200
const TIMERANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`
const START = '/sysmaster/capture_start'
/** The time that an impatient gateway gives a device: longer than a healthy one ever takes. */
const DEVICE_LIMIT_MS = 5_000
/** The time that a gateway gives devices that all answer late. */
const LATE_MS = 1_000

interface DeviceEntry {
  readonly Device: string
  readonly Status: number
  readonly Body?: unknown
  readonly error?: { readonly code: string; readonly detail: string }
}

describe('the gateway in front of its devices', () => {
  const world = gatewayWorld(PACKETS)
  const { fleet } = world

  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET', { url } = world.gateway) =>
    fetch(url + path, {
      method,
      headers: { ...world.gateway.as.full, ...headers },
      redirect: 'manual',
    })
  const entriesOf = async (answer: Response) => ((await answer.json()) as { Devices: DeviceEntry[] }).Devices
  const seen = () =>
    fleet.flatMap(({ name, requests }) => requests.map(({ method, url }) => `${name} ${method} ${url}`))

  describe('control calls at the root', () => {
    test('collect one answer of each chosen device', async () => {
      const all = await ask('/api/v1/system/version')
      assert.equal(all.status, 200)
      assert.match(all.headers.get('content-type') ?? '', /^application\/json/)
      assert.deepEqual(
        await entriesOf(all),
        ['d0', 'd1', 'd2'].map((name) => ({
          Device: name,
          Status: 200,
          Body: { version: '1.2.3', device: name, build: '' },
        })),
      )
      const [time] = await entriesOf(await ask('/api/v1/system/time_current?Device=d1&rand=1'))
      assert.match(String(time?.Body), /^\d{19}\n$/, 'all digits, so a text')
      assert.ok(seen().includes('d1 GET /api/v1/system/time_current?rand=1'), seen().join())
    })

    for (const [method, path] of [
      ['GET', START],
      ['POST', START],
      ['POST', '/sysmaster/capture_stop'],
    ] as const) {
      test(`${method} ${path} goes to the chosen devices, with one answer each`, async () => {
        for (const device of fleet) device.answers.set(path, { Status: true, Str: `on ${device.name}` })
        const answer = await ask(`${path}?StreamName=lab&Device=d0,d2`, {}, method)
        assert.equal(answer.status, 200)
        assert.deepEqual(
          (await entriesOf(answer)).map(({ Device, Body }) => [Device, (Body as { Str: string }).Str]),
          [
            ['d0', 'on d0'],
            ['d2', 'on d2'],
          ],
        )
        assert.deepEqual(seen(), [`d0 GET ${path}?StreamName=lab`, `d2 GET ${path}?StreamName=lab`])
      })
    }

    for (const [what, query, param] of [
      ['no device', '', 'Device'],
      ['an empty Device', '&Device=', 'Device'],
      ['a Device without a value', '&Device', 'Device'],
      ['a misspelt Device', '&device=d1', 'device'],
      ['a Device twice', '&Device=d1&%44evice=d2', 'Device'],
    ] as const) {
      test(`change nothing with ${what}`, async () => {
        const answer = await ask(`/sysmaster/capture_stop?rand=1${query}`, {}, 'POST')
        const problem = (await answer.json()) as Record<string, unknown>
        assert.deepEqual([answer.status, problem.code, problem.param], [400, 'bad-parameter', param])
        assert.deepEqual(seen(), [])
      })
    }

    test('change nothing with Device and the header Capfleet-Device beside it', async () => {
      const answer = await ask('/sysmaster/capture_stop?Device=d1', { 'Capfleet-Device': 'd0' }, 'POST')
      const { code, param, detail } = (await answer.json()) as Record<string, unknown>
      assert.deepEqual([answer.status, code, param], [400, 'bad-parameter', 'Device'])
      assert.match(String(detail), /the header Capfleet-Device/)
      assert.deepEqual(seen(), [])
    })

    test('are 207 when the devices differ, and the failure when all failed alike', async () => {
      const [d0, d1] = fleet as [FakeDevice, FakeDevice]
      d0.answers.set(START, { Status: true })
      await using impatient = await startTempGateway(fleet, world.redis.url, {
        control: { timeoutMs: DEVICE_LIMIT_MS },
      })
      d1.behaviour = { silent: true }
      const mixed = await ask(`${START}?StreamName=lab&Device=*`, {}, 'POST', impatient)
      assert.equal(mixed.status, 207)
      const entries = await entriesOf(mixed)
      assert.deepEqual(
        entries.map(({ Status, error }) => [Status, error?.code]),
        [
          [200, undefined],
          [504, 'device-timeout'],
          [404, 'not-found'],
        ],
      )
      const alike = await ask(`${START}?StreamName=lab&Device=d2`, {}, 'POST')
      const problem = (await alike.json()) as Record<string, unknown>
      assert.deepEqual([alike.status, problem.code, problem.devices], [404, 'not-found', ['d2']])
      const metrics = await (await ask('/metrics', {}, 'GET', impatient)).text()
      assert.match(metrics, /^capfleet_control_calls_total\{device="d1",result="device"\} 1$/m)
    })

    test('delete a capture on the one device that holds it', async () => {
      const [d0, d1] = fleet as [FakeDevice, FakeDevice]
      d0.captures = [{ StreamName: 'lab_20260101_1000' }]
      d1.captures = [{ StreamName: 'core_20260101_1000' }]
      d1.answers.set('/pcap/del', { Status: true, BytesFreed: '5' })
      const answer = await ask('/pcap/del?StreamName=core_20260101_1000', {}, 'DELETE')
      assert.deepEqual(await entriesOf(answer), [
        { Device: 'd1', Status: 200, Body: { Status: true, BytesFreed: '5' } },
      ])
      const deleting = seen().filter((line) => line.includes('/pcap/del'))
      assert.deepEqual(deleting, ['d1 GET /pcap/del?StreamName=core_20260101_1000'])
      d1.captures = []
      const again = await ask('/pcap/del?StreamName=core_20260101_1000', {}, 'DELETE')
      assert.equal(again.status, 404, 'the list from before is forgotten')
    })

    test('that change something need the role full, the own site, no HEAD and no body', async () => {
      for (const [path, method] of [
        [START, 'POST'],
        ['/sysmaster/capture_stop', 'POST'],
        ['/pcap/del?StreamName=x', 'DELETE'],
      ] as const) {
        for (const prefix of ['', '/devices/d0']) {
          const status = async (headers: Record<string, string>, by: string) =>
            (await ask(prefix + path, headers, by)).status
          for (const by of [method, 'GET']) {
            assert.equal(await status({ ...world.gateway.as.user }, by), 403, `${by} ${prefix}${path}`)
            assert.equal(await status({ 'sec-fetch-site': 'cross-site' }, by), 403)
          }
          const head = await ask(prefix + path, {}, 'HEAD')
          assert.deepEqual([head.status, head.headers.get('allow')], [405, `GET, ${method}`])
          assert.equal(await status({}, method === 'POST' ? 'DELETE' : 'POST'), 405)
        }
      }
      const body = await fetch(world.gateway.url + START, {
        method: 'POST',
        headers: world.gateway.as.full,
        body: 'x=1',
      })
      assert.deepEqual([body.status, ((await body.json()) as { code: string }).code], [400, 'bad-parameter'])
      assert.deepEqual(seen(), [])
    })

    test('on one device have POST and DELETE twins, which reach the device as GET', async () => {
      const [d0] = fleet as [FakeDevice]
      d0.answers.set(START, { Status: true, Str: 'successfully started capture' })
      d0.answers.set('/pcap/del', { Status: true })
      const started = await ask(`/devices/d0${START}?StreamName=a`, {}, 'POST')
      assert.deepEqual(await started.json(), { Status: true, Str: 'successfully started capture' })
      assert.equal((await ask('/devices/d0/pcap/del?StreamName=a_1', {}, 'DELETE')).status, 200)
      assert.deepEqual(seen(), [`d0 GET ${START}?StreamName=a`, 'd0 GET /pcap/del?StreamName=a_1'])
    })
  })

  test('a thousand downloads of captures that begin together cost a few lists of each device', async () => {
    const [d0] = fleet as [FakeDevice]
    d0.captures = [{ StreamName: 'lab_20260101_1000' }]
    const beganMs = performance.now()
    const heads = Array.from({ length: 200 }, () =>
      ask('/stream/ssize?StreamName=lab_20260101_1000').then((answer) => answer.text()),
    )
    await Promise.all(heads)
    // Lists are cached for 1.5 s. On a busy machine the downloads together take longer.
    const most = 4 + 2 * Math.floor((performance.now() - beganMs) / 1_500)
    assert.ok(most < heads.length / 2)
    for (const device of fleet) {
      const lists = device.requests.filter(({ url }) => url === '/stream/list').length
      // The lists of the others may still be cached from the previous test; that of d0 was dropped with its capture.
      assert.ok(lists >= (device === d0 ? 1 : 0) && lists <= most, `${device.name}: ${lists}`)
    }
  })

  test("no header of a caller's request reaches a device", async () => {
    const [d0] = fleet as [FakeDevice]
    d0.captures = [{ StreamName: 'lab_20260101_1000' }]
    for (const device of fleet) device.answers.set(START, { Status: true })
    const canary = 'canary-5e1f'
    const headers = {
      cookie: `session=${canary}`,
      'proxy-authorization': `Basic ${canary}`,
      'x-api-key': canary,
      'x-forwarded-for': canary,
      forwarded: `for=${canary}`,
      // Other sites must not request changes.
      referer: `${world.gateway.url}/`,
      origin: world.gateway.url,
      'user-agent': canary,
      te: 'trailers',
    }
    for (const [path, method] of [
      [TIMERANGE, 'GET'],
      [`/devices/d0${TIMERANGE}`, 'GET'],
      ['/api/v1/pcap/single?StreamName=lab_20260101_1000', 'GET'],
      ['/stream/list', 'GET'],
      ['/api/v1/system/status', 'GET'],
      [`${START}?Device=*`, 'POST'],
      ['/devices/d0/api/v1/system/version', 'GET'],
      [`/devices/d0${START}`, 'POST'],
    ] as const) {
      const req = request(world.gateway.url + path, {
        method,
        headers: { ...world.gateway.as.full, ...headers },
      })
      req.end()
      const [res] = await once(req, 'response')
      res.resume()
      await once(res, 'end')
      assert.equal(res.statusCode, 200, path)
    }
    const sent = fleet.flatMap((device) => [...device.requests, ...device.probes])
    assert.ok(sent.length > 20)
    const own = world.gateway.as.full.authorization.slice('Basic '.length)
    for (const { url, headers } of sent) {
      const text = JSON.stringify(headers)
      assert.ok(!text.includes(canary) && !text.includes(own), `${url} ${text}`)
      assert.deepEqual([headers.origin, headers.referer], [undefined, undefined])
      assert.equal(headers.authorization, `Basic ${btoa(`gateway:${DEVICE_PASSWORD}`)}`)
    }
  })

  test('one device by name, and 404 with the nearest names', async () => {
    const reportOf = async () => (await (await ask('/v1/devices/d1')).json()) as Record<string, unknown>
    // A failed call of another test triggered a probe; a probe requests the status after it has found the device up.
    await eventually(async () => (await reportOf()).ptp !== null, {
      message: 'd1 is up and its status is known',
    })
    const d1 = await reportOf()
    assert.deepEqual(
      [d1.name, d1.reachable, d1.breaker, d1.ptp, d1.slotsTotal, d1.waiting],
      ['d1', true, 'closed', { sync: true, offsetNs: 12.5 }, 4, 0],
    )
    assert.match(String(d1.clockOffsetNs), /^-?\d+$/)
    assert.match(String(d1.clockErrorNs), /^\d+$/)
    assert.equal((await ask('/v1/devices/d7')).status, 404)
    assert.deepEqual(seen(), [], 'the devices are not asked')
  })
})

describe('a device that is down', () => {
  test('fails at once and alone, is reported within seconds, and is used again when it is back', async () => {
    await using redis = await TempRedis.create()
    const [d0, d1] = (await startFakeFleet(PACKETS, ['d0', 'd1'])) as [FakeDevice, FakeDevice]
    await using _second = d1
    const { port } = d0
    await using gateway = await startTempGateway([d0, d1], redis.url, {
      health: { failuresMax: 2, intervalS: 0.5 },
    })
    const ask = (path: string) => fetch(gateway.url + path, { headers: gateway.as.full })
    const reportOf = async (name: string) =>
      (await (await ask(`/v1/devices/${name}`)).json()) as Record<string, unknown>
    assert.equal((await reportOf('d0')).reachable, true)
    await d0.kill()
    await eventually(async () => (await reportOf('d0')).breaker === 'open', { message: 'd0 is open' })
    const report = await reportOf('d0')
    assert.equal(report.reachable, false)
    assert.equal((report.error as { code: string }).code, 'device-unreachable')
    assert.match(await (await ask('/metrics')).text(), /^capfleet_device_up\{device="d0"\} 0$/m)
    for (const path of [TIMERANGE, `/devices/d0${TIMERANGE}`, '/devices/d0/api/v1/system/version']) {
      const answer = await ask(path)
      const problem = (await answer.json()) as Record<string, unknown>
      assert.deepEqual([answer.status, problem.code, problem.devices], [502, 'device-unreachable', ['d0']])
      assert.match(String(problem.detail), /device d0 has been failing since 20\d\d-.*answers a probe/)
    }
    assert.equal((await ask(`/devices/d1${TIMERANGE}`)).status, 200)
    assert.equal((await ask('/stream/list')).headers.get('capfleet-unreachable'), 'd0')
    assert.deepEqual(await redis.leftovers('capfleet'), [], 'nobody waited in a queue')
    await using _back = await FakeDevice.start('d0', fleetPcap(0, PACKETS), port)
    await eventually(async () => (await reportOf('d0')).breaker !== 'open', { message: 'd0 is back' })
    assert.equal((await ask(`/devices/d0${TIMERANGE}`)).status, 200)
  })
})

describe('a device that did not answer its last probe', () => {
  const world = gatewayWorld(PACKETS, {
    // Longer than the test may take: nobody waits for that.
    control: { timeoutMs: 600_000, probeTimeoutMs: 500 },
    health: { intervalS: 0.5 },
  })

  test('is asked what it is capturing, but not waited for longer than by a probe', async () => {
    const [d0] = world.fleet as [FakeDevice]
    d0.behaviour = { silent: true }
    const ask = (path: string) => httpGet(world.gateway.url + path, { headers: world.gateway.as.user })
    await eventually(async () => (await ask('/v1/devices/d0')).json().reachable === false, {
      message: 'a probe has failed',
    })
    const answer = await ask('/sysmaster/capture_status?Device=d0')
    assert.deepEqual([answer.status, answer.json().code], [504, 'device-timeout'])
    assert.match(String(answer.json().detail), /^device d0 .* within 0\.5 s$/)
    assert.equal((await ask('/v1/devices/d0')).json().breaker, 'closed')
  })
})

describe('a caller', () => {
  const world = gatewayWorld(PACKETS, {
    health: { failuresMax: 2, intervalS: 3_600 },
  })
  const ask = (path: string) => httpGet(world.gateway.url + path, { headers: world.gateway.as.user })
  const breakerOf = async (device: string) => (await ask(`/v1/devices/${device}`)).json().breaker

  test('cannot make the gateway give up a device by a parameter that is echoed in a header', async () => {
    const [d0] = world.fleet as [FakeDevice]
    d0.behaviour = { echoesQuery: true }
    for (const path of ['/devices/d0/api/v1/system/version', '/devices/d0/x', '/api/v1/system/version']) {
      for (let count = 0; count < 4; count += 1) await ask(`${path}?${'x'.repeat(17_000)}=1`)
    }
    assert.equal(await breakerOf('d0'), 'closed')
    assert.equal((await ask(`/devices/d0${TIMERANGE}`)).status, 200)
  })

  test('whose filter finds the compilers of a device busy gets Retry-After', async () => {
    const [d0, d1] = world.fleet as [FakeDevice, FakeDevice]
    const busy = { status: 503, body: { code: 'compiler-busy', detail: 'eight filters wait' } }
    d0.behaviour = { problem: busy }
    for (let count = 0; count < 6; count += 1) {
      const answer = await ask(`/devices/d0${TIMERANGE}&Wait=0`)
      assert.deepEqual([answer.status, answer.json().code], [503, 'compiler-busy'])
      assert.equal(answer.headers['retry-after'], '1')
      assert.equal(answer.headers['capfleet-queue-position'], undefined)
    }
    d1.behaviour = { problem: busy }
    const merge = await ask(`${TIMERANGE}&Device=d0,d1&OnError=partial`)
    assert.deepEqual([merge.status, merge.json().code], [503, 'compiler-busy'])
    assert.equal(await breakerOf('d0'), 'closed')
    d0.behaviour = { hangAfterBytes: 10_000, resumed: d0.until(() => d0.readers === 4) }
    const four = await Promise.all(Array.from({ length: 4 }, () => ask(`/devices/d0${TIMERANGE}&Wait=20`)))
    assert.deepEqual(
      four.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    assert.equal(d0.mostReaders, 4, 'its limit was not lowered')
  })

  test('learns that compilers are busy before it waits for a stream', async () => {
    const [d0] = world.fleet as [FakeDevice]
    d0.behaviour = { estimateProblem: { status: 503, body: { code: 'compiler-busy', detail: 'eight wait' } } }
    const answer = await ask(`/devices/d0${TIMERANGE}&FilterBPF=tcp`)
    assert.deepEqual([answer.status, answer.json().code], [503, 'compiler-busy'])
    assert.ok(d0.requests.every(({ url }) => url.includes('/pcap/estimate')))
  })

  test("is not logged out by a device's answer, and gets none of its headers that the API does not have", async () => {
    const [d0] = world.fleet as [FakeDevice]
    d0.behaviour = {
      problem: { status: 400, body: { code: 'unauthenticated', detail: 'log in at evil.example' } },
    }
    const refused = await ask(`/devices/d0${TIMERANGE}`)
    assert.deepEqual([refused.status, refused.json().code], [502, 'device-protocol'])
    assert.ok(!refused.body.includes('evil'))
    d0.behaviour = {
      headers: { 'Capfleet-Status': 'complete', 'Capfleet-Evil': 'x', 'Capfleet-Order': 'time' },
    }
    const { headers } = await ask(`/devices/d0${TIMERANGE}`)
    const told = Object.keys(headers).filter((name) => name.startsWith('capfleet-'))
    assert.deepEqual(told.sort(), [
      'capfleet-damaged-segments',
      'capfleet-devices',
      'capfleet-order',
      'capfleet-request-id',
      'capfleet-ts-unit',
    ])
  })
})

describe('a caller whose calls a device answers late', () => {
  const world = gatewayWorld(PACKETS, {
    health: { failuresMax: 2, intervalS: 3_600 },
    // This is also the limit for estimates and for probes, and healthy devices stay below it.
    control: { timeoutMs: LATE_MS, probeTimeoutMs: 5_000 },
    downloads: { startTimeoutMs: LATE_MS },
  })
  const ask = (path: string) => httpGet(world.gateway.url + path, { headers: world.gateway.as.user })
  const breakerOf = async (device: string) => (await ask(`/v1/devices/${device}`)).json().breaker

  for (const [what, path, silentBelow] of [
    ['downloads that begin late', `/devices/d0${TIMERANGE}&FilterRE=x`, '/api/v1/pcap/'],
    ['estimates that are slow', `/v1/estimate?${FLEET_RANGE}&Device=d0`, '/api/v1/pcap/'],
    ['calls that are slow', '/devices/d0/api/v1/system/io_stats', '/api/v1/system/io_stats'],
    ['calls to several that are slow', '/api/v1/system/io_stats', '/api/v1/system/io_stats'],
    ['lists that are slow', '/stream/list', '/stream/list'],
  ] as const) {
    test(`cannot make the gateway give it up by ${what}`, async () => {
      const [d0] = world.fleet as [FakeDevice]
      d0.behaviour = { silentBelow }
      for (const { status, headers } of await Promise.all([ask(path), ask(path)]))
        assert.ok([504, 207].includes(status) || headers['capfleet-unreachable'] === 'd0', `${status}`)
      assert.equal(await breakerOf('d0'), 'closed')
      d0.behaviour = {}
      const isServed = async () => (await ask(`/devices/d0${TIMERANGE}`)).status === 200
      await eventually(isServed, { message: 'a download of it begins in time' })
    })
  }
})
