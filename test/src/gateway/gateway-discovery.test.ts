// A request for all devices is never silently incomplete: while a directory has not answered, has lost a device, or is
// empty.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { EventStream } from '../../support/clients/event-stream.ts'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap } from '../../support/devices/fake-fleet.ts'
import { eventually } from '../../support/eventually.ts'
import { type HttpGetOptions, httpGet, httpOpen } from '../../support/http-get.ts'
import { OWN_LOOPBACK } from '../../support/network/own-loopback.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { FakeKubernetes, makeSlice } from '../../support/servers/fake-kubernetes.ts'
import { DEVICE_PASSWORD } from '../../support/suite-secrets.ts'
import { type TempFolder, tempFolder } from '../../support/temp-folder.ts'

const PACKETS = 200
/** More than all sockets on the way hold while the client does not read. */
const LARGE_PACKETS = 60_000
const TIMERANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`
/** Requests that concern all devices if none is named. */
const DOWNLOADS = [TIMERANGE, `${TIMERANGE}&Queue=job`, '/api/v1/pcap/single?StreamName=tap']
const READS = [...DOWNLOADS, `/v1/estimate?${FLEET_RANGE}`, '/stream/ssize?StreamName=tap&Size=1MB']
const LISTS = ['/stream/list', `/v1/activity?${FLEET_RANGE}`]

describe('a fleet listed by a directory', () => {
  let redis: TempRedis
  let folder: TempFolder

  before(async () => {
    redis = await TempRedis.create()
    folder = await tempFolder()
    await writeFile(join(folder.path, 'token'), 'pod-token')
    await writeFile(join(folder.path, 'password'), DEVICE_PASSWORD)
  })
  after(async () => {
    await folder[Symbol.asyncDispose]()
    await redis[Symbol.asyncDispose]()
  })

  const start = (kubernetes: FakeKubernetes, devices: readonly FakeDevice[], name: string) =>
    startTempGateway(
      devices,
      redis.url,
      {
        redis: { url: redis.url, keyPrefix: name },
        deviceDiscovery: [
          {
            endpointSlice: {
              url: kubernetes.url,
              namespace: 'capture',
              port: 'api',
              tokenFile: join(folder.path, 'token'),
            },
            scheme: 'http',
            allowCidrs: [`${OWN_LOOPBACK}/32`],
            user: 'gateway',
            password: { file: join(folder.path, 'password') },
          },
        ],
        health: { intervalS: 0.5, failuresMax: 5 },
      },
      [{ name: 'elsewhere', role: 'full', devices: 'nowhere*' }],
    )
  const ask = (gateway: TempGateway, path: string, more: HttpGetOptions = {}) =>
    httpGet(gateway.url + path, { headers: gateway.as.full, ...more })
  const order = (gateway: TempGateway, headers = gateway.as.full) =>
    ask(gateway, `/v1/exports?${FLEET_RANGE}`, { headers, method: 'POST' })
  const untilReady = (gateway: TempGateway) =>
    eventually(async () => (await ask(gateway, '/readyz')).status === 200, {
      message: 'the directory has answered',
    })

  test('is not served as if complete before the first answer; a known device is', async () => {
    await using d0 = await FakeDevice.start('d0', fleetPcap(0, PACKETS))
    await using d1 = await FakeDevice.start('d1', fleetPcap(1, PACKETS))
    await using kubernetes = await FakeKubernetes.start()
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: OWN_LOOPBACK }], d1.port))
    kubernetes.isBroken = true
    await using gateway = await start(kubernetes, [d0], 'pending')
    const ready = await ask(gateway, '/readyz')
    assert.deepEqual([ready.status, ready.json().ready, ready.json().devicesKnown], [503, false, false])
    const refused = [...READS, ...LISTS, `${TIMERANGE}&Device=*`, `${TIMERANGE}&Device=d0,pod-1`]
    const answers = [
      ...(await Promise.all(refused.map((path) => ask(gateway, path)))),
      await order(gateway),
      await ask(gateway, `/devices/pod-1${TIMERANGE}`),
    ]
    for (const [index, { status, headers, json }] of answers.entries())
      assert.deepEqual(
        [status, json().code, headers['retry-after']],
        [503, 'discovery-pending', '2'],
        refused[index],
      )
    assert.equal(d0.mostReaders, 0)
    for (const path of [`${TIMERANGE}&Device=d0`, `/devices/d0${TIMERANGE}`])
      assert.ok((await ask(gateway, path)).body.equals(fleetPcap(0, PACKETS)))
    kubernetes.isBroken = false
    await untilReady(gateway)
    const whole = await ask(gateway, TIMERANGE)
    assert.deepEqual([whole.status, whole.headers['capfleet-devices']], [200, 'd0, pod-1'])
    assert.equal((await ask(gateway, `/devices/pod-2${TIMERANGE}`)).json().code, 'unknown-device')
  })

  test('misses a device that is not ready, or that vanished: it is down', async () => {
    await using d0 = await FakeDevice.start('d0', fleetPcap(0, PACKETS))
    const d1 = await FakeDevice.start('d1', fleetPcap(1, PACKETS))
    await using kubernetes = await FakeKubernetes.start()
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: OWN_LOOPBACK }], d1.port))
    await using gateway = await start(kubernetes, [d0], 'vanished')
    await untilReady(gateway)
    const { port } = d1
    assert.equal((await ask(gateway, TIMERANGE)).status, 200)
    await d1[Symbol.asyncDispose]()
    const isMissed = async () => {
      const whole = await ask(gateway, TIMERANGE)
      assert.deepEqual([whole.status, whole.json().code], [502, 'device-unreachable'])
      assert.match(String(whole.json().detail), /pod-1/)
      const partial = await ask(gateway, `${TIMERANGE}&OnError=partial`)
      assert.equal(partial.status, 200)
      assert.match(String(partial.headers['capfleet-missing']), /^pod-1;/)
      assert.ok(partial.body.equals(fleetPcap(0, PACKETS)))
      await eventually(
        async () => (await ask(gateway, '/metrics')).body.includes('capfleet_device_up{device="pod-1"} 0\n'),
        { message: 'the alert sees it' },
      )
    }
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: OWN_LOOPBACK, ready: false }], port))
    kubernetes.put(makeSlice('b', [{ name: 'd1', address: '127.0.0.2' }], port))
    await isMissed()
    kubernetes.remove('a')
    // The rejected device of the other slice shows that the directory's answer was processed.
    kubernetes.put(makeSlice('b', [{ name: 'd2', address: '127.0.0.2' }], port))
    await eventually(
      () => gateway.logged.some((line) => JSON.stringify(line).includes('d2: the address 127.0.0.2')),
      { message: 'the change was heard' },
    )
    await isMissed()
  })

  test('sends nothing to the address of a device that vanished until it is there again', async () => {
    await using d0 = await FakeDevice.start('d0', fleetPcap(0, PACKETS))
    const large = fleetPcap(1, LARGE_PACKETS)
    await using d1 = await FakeDevice.start('d1', large)
    await using kubernetes = await FakeKubernetes.start()
    const slice = makeSlice('a', [{ name: 'pod-1', address: OWN_LOOPBACK }], d1.port)
    kubernetes.put(slice)
    await using gateway = await start(kubernetes, [d0], 'silent')
    await untilReady(gateway)
    using running = await httpOpen(`${gateway.url}/devices/pod-1${TIMERANGE}`, { headers: gateway.as.full })
    kubernetes.remove('a')
    const report = async () => (await ask(gateway, '/v1/devices/pod-1')).json()
    await eventually(async () => (await report()).reachable === false, { message: 'it is down' })
    const { error, breaker, version } = await report()
    assert.deepEqual([breaker, version], ['open', '1.2.3'])
    const reason = /device pod-1 is not used: its directory has not listed it since 20\S+Z/
    assert.match(JSON.stringify(error), reason)

    const asked = () => [d1.connections, d1.probes.length, d1.requests.length]
    const before = asked()
    for (const path of [
      TIMERANGE,
      `${TIMERANGE}&Device=pod-1&OnError=partial`,
      `/devices/pod-1${TIMERANGE}`,
      `/devices/pod-1${TIMERANGE}&FilterBPF=tcp`,
      '/devices/pod-1/stream/list',
      '/devices/pod-1/sysmaster/capture_stop',
      '/devices/pod-1/api/v1/system/events',
      '/devices/pod-1/what/ever',
    ]) {
      const { status, json } = await ask(gateway, path)
      assert.deepEqual([status, json().code], [502, 'device-unreachable'], path)
      assert.match(String(json().detail), reason, path)
    }
    const partial = await ask(gateway, `${TIMERANGE}&OnError=partial`)
    assert.match(String(partial.headers['capfleet-missing']), /^pod-1;/)
    assert.ok(partial.body.equals(fleetPcap(0, PACKETS)))
    assert.equal((await ask(gateway, TIMERANGE, { method: 'HEAD' })).status, 502)
    assert.equal((await ask(gateway, '/stream/list')).headers['capfleet-unreachable'], 'pod-1')
    const replies = await ask(gateway, '/api/v1/system/version')
    assert.equal(replies.status, 207)
    assert.match(replies.body.toString(), reason)
    using events = new EventStream(await httpOpen(`${gateway.url}/v1/events`, { headers: gateway.as.viewer }))
    assert.deepEqual((await events.next())?.data.down, ['pod-1'])
    for (let event = await events.next(); ; event = await events.next())
      if (event?.data.kind === 'events-silent' && event.data.device === 'pod-1') {
        assert.match(JSON.stringify(event.data), reason)
        break
      }
    const probes = d0.probes.length
    await eventually(() => d0.probes.length > probes + 6, { message: 'd0 is probed' })
    assert.deepEqual(asked(), before)

    assert.equal(d1.readers, 1)
    assert.ok((await buffer(running.response)).equals(large), 'a download that ran goes on')
    kubernetes.put(slice)
    await eventually(async () => (await report()).reachable === true, { message: 'it is there again' })
    assert.deepEqual([(await report()).breaker, (await ask(gateway, TIMERANGE)).status], ['closed', 200])
  })

  test('without any device, or any that the caller may see, refuses at once to read of all', async () => {
    await using d0 = await FakeDevice.start('d0', fleetPcap(0, PACKETS))
    await using kubernetes = await FakeKubernetes.start()
    await using gateway = await start(kubernetes, [], 'none')
    await untilReady(gateway)
    const areRefused = async (headers: TempGateway['as']['full']) => {
      const startedMs = performance.now()
      const answers = await Promise.all([
        ...READS.map((path) => ask(gateway, path, { headers })),
        order(gateway, headers),
      ])
      for (const { status, json } of answers) assert.deepEqual([status, json().code], [503, 'no-device'])
      // A download would have waited for 25 s.
      assert.ok(performance.now() - startedMs < 10_000)
    }
    await areRefused(gateway.as.full)
    for (const path of LISTS) assert.equal((await ask(gateway, path)).status, 200, path)
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: OWN_LOOPBACK }], d0.port))
    await eventually(async () => (await ask(gateway, TIMERANGE)).status === 200, {
      message: 'the device is found',
    })
    await areRefused(gateway.basic('elsewhere'))
  })
})
