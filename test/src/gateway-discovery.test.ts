// What is asked of all devices is never silently short: while a directory has not answered, or has lost a device, or has none.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { FakeDevice } from '../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap } from '../support/devices/fake-fleet.ts'
import { eventually } from '../support/eventually.ts'
import { FakeKubernetes, makeSlice } from '../support/fake-kubernetes.ts'
import { type HttpGetOptions, httpGet } from '../support/http-get.ts'
import { startTempGateway, type TempGateway } from '../support/processes/temp-gateway.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { DEVICE_PASSWORD } from '../support/suite-secrets.ts'
import { type TempFolder, tempFolder } from '../support/temp-folder.ts'

const PACKETS = 200
const TIMERANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`
/** What is about all devices, when nobody names some. */
const DOWNLOADS = [TIMERANGE, `${TIMERANGE}&Queue=job`, '/api/v1/pcap/single?StreamName=tap']
const READS = [...DOWNLOADS, `/v1/estimate?${FLEET_RANGE}`, '/stream/ssize?StreamName=tap&Size=1MB']
const LISTS = ['/stream/list', `/v1/activity?${FLEET_RANGE}`]
const LIMIT_MS = 8_000

describe('a fleet that a directory tells of', { timeout: 60_000 }, () => {
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
            allowCidrs: ['127.0.0.1/32'],
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
      limitMs: LIMIT_MS,
      message: 'the directory has answered',
    })

  test('is not served as if it were whole before the first answer; a device that is known is', async () => {
    await using d0 = await FakeDevice.start('d0', fleetPcap(0, PACKETS))
    await using d1 = await FakeDevice.start('d1', fleetPcap(1, PACKETS))
    await using kubernetes = await FakeKubernetes.start()
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: '127.0.0.1' }], d1.port))
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
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: '127.0.0.1' }], d1.port))
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
        { limitMs: LIMIT_MS, message: 'the alert sees it' },
      )
    }
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: '127.0.0.1', ready: false }], port))
    kubernetes.put(makeSlice('b', [{ name: 'd1', address: '127.0.0.2' }], port))
    await isMissed()
    kubernetes.remove('a')
    // The refused device of the other slice tells that the directory was heard.
    kubernetes.put(makeSlice('b', [{ name: 'd2', address: '127.0.0.2' }], port))
    await eventually(
      () => gateway.logged.some((line) => JSON.stringify(line).includes('d2: the address 127.0.0.2')),
      { limitMs: LIMIT_MS, message: 'the change was heard' },
    )
    await isMissed()
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
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: '127.0.0.1' }], d0.port))
    await eventually(async () => (await ask(gateway, TIMERANGE)).status === 200, {
      limitMs: LIMIT_MS,
      message: 'the device is found',
    })
    await areRefused(gateway.basic('elsewhere'))
  })
})
