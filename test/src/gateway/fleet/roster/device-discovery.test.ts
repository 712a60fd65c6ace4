// Discoveries with a real DNS server and a real HTTP server that lists and watches.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { DeviceDiscovery } from '../../../../../src/gateway/fleet/roster/device-discovery.ts'
import { discoverySchema } from '../../../../../src/gateway/fleet/roster/device-settings.ts'
import type { Log } from '../../../../../src/shared/base/log.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'
import { eventually } from '../../../../support/eventually.ts'
import { FakeKubernetes, makeSlice } from '../../../../support/servers/fake-kubernetes.ts'
import { TinyDns } from '../../../../support/servers/tiny-dns.ts'
import { tempFolder } from '../../../../support/temp-folder.ts'

const access = {
  credentials: { token: new Secret('secret') },
  site: undefined,
  ca: undefined,
  fetchCompression: 'none',
} as const

/**
 * A running discovery, and the devices that it found last, as "name url", followed by "gone" if the device has
 * vanished.
 */
function discover(settings: Record<string, unknown>) {
  const found: string[][] = []
  const logged: string[] = []
  const record = (event: string, fields: Readonly<Record<string, unknown>> = {}) => {
    logged.push(`${event} ${fields.device ?? fields.err}`)
  }
  const log: Log = { debug: record, info: record, warn: record, error: record }
  const discovery = new DeviceDiscovery({
    settings: discoverySchema.parse({ token: { env: 'X' }, intervalS: 0.1, scheme: 'http', ...settings }),
    access,
    log,
    onDevices: (devices) =>
      found.push(
        devices.map(
          ({ name, url, vanishedAt }) => `${name} ${url.host}${vanishedAt === undefined ? '' : ' gone'}`,
        ),
      ),
  })
  const until = (expected: readonly string[]) =>
    eventually(() => JSON.stringify(found.at(-1)) === JSON.stringify(expected), {
      message: `found ${expected}, log ${logged}`,
    })
  return { found, logged, until, [Symbol.asyncDispose]: () => discovery.close() }
}

describe('discovery by DNS', () => {
  const SRV = '_capfleet._tcp.example.org'

  test('follows the records; while DNS fails the last list stays', async () => {
    await using dns = await TinyDns.start([
      [SRV, 'SRV', '80 lon1.example.org'],
      ['lon1.example.org', 'A', '192.0.2.1'],
    ])
    await using running = discover({ srv: SRV, dnsServers: [dns.address] })
    await running.until(['lon1 lon1.example.org'])
    dns.isBroken = true
    const calls = running.found.length
    await eventually(() => running.logged.some((line) => line.startsWith('discovery.failed')), {
      message: 'the failure is logged',
    })
    assert.ok(running.found.length <= calls + 1)
    dns.table = [
      [SRV, 'SRV', '80 lon1.example.org'],
      [SRV, 'SRV', '8081 nyc1.example.org'],
      ['lon1.example.org', 'A', '192.0.2.1'],
      ['nyc1.example.org', 'A', '192.0.2.2'],
    ]
    dns.isBroken = false
    await running.until(['lon1 lon1.example.org', 'nyc1 nyc1.example.org:8081'])
  })

  test('a device that vanishes is kept for keepS, or until another name has its address', async () => {
    await using dns = await TinyDns.start([
      [SRV, 'SRV', '80 gone.example.org'],
      [SRV, 'SRV', '80 lon1.example.org'],
      [SRV, 'SRV', '80 nyc1.example.org'],
      ['gone.example.org', 'A', '192.0.2.9'],
      ['lon1.example.org', 'A', '192.0.2.1'],
      ['nyc1.example.org', 'A', '192.0.2.2'],
    ])
    const [gone, lon1, nyc1] = ['gone', 'lon1', 'nyc1'].map((name) => `${name} ${name}.example.org`) as [
      string,
      string,
      string,
    ]
    await using keeping = discover({ srv: SRV, dnsServers: [dns.address] })
    await using forgetting = discover({ srv: SRV, dnsServers: [dns.address], keepS: 1.5 })
    await keeping.until([gone, lon1, nyc1])
    await forgetting.until([gone, lon1, nyc1])
    const told = forgetting.found.length
    dns.table = [
      [SRV, 'SRV', '80 new1.example.org'],
      [SRV, 'SRV', '80 nyc1.example.org'],
      ['new1.example.org', 'A', '192.0.2.1'],
      ['nyc1.example.org', 'A', '192.0.2.2'],
    ]
    await keeping.until([`${gone} gone`, 'new1 new1.example.org', nyc1])
    await forgetting.until(['new1 new1.example.org', nyc1])
    const between = forgetting.found.slice(told).map((devices) => devices.join())
    assert.ok(
      between.includes([`${gone} gone`, 'new1 new1.example.org', nyc1].join()),
      'not forgotten at once',
    )
    assert.ok(keeping.found.at(-1)?.includes(`${gone} gone`))
    dns.table = [...dns.table, [SRV, 'SRV', '80 gone.example.org'], ['gone.example.org', 'A', '192.0.2.9']]
    await keeping.until([gone, 'new1 new1.example.org', nyc1])
  })

  test('a name that resolves to a forbidden address is refused, reported once, and allowed by allowCidrs', async () => {
    await using dns = await TinyDns.start([
      [SRV, 'SRV', '80 evil.example.org'],
      [SRV, 'SRV', '80 good.example.org'],
      ['evil.example.org', 'A', '192.0.2.1'],
      ['evil.example.org', 'A', '127.0.0.1'],
      ['good.example.org', 'A', '192.0.2.2'],
    ])
    await using running = discover({ srv: SRV, dnsServers: [dns.address] })
    await eventually(() => running.found.length >= 3, { message: 'asked three times' })
    assert.deepEqual(running.found.at(-1), ['good good.example.org'])
    const lines = running.logged.filter((line) => line.startsWith('discovery.refused'))
    assert.deepEqual(lines, ['discovery.refused evil: the address 127.0.0.1 is forbidden; see allowCidrs'])
    await using permissive = discover({ srv: SRV, dnsServers: [dns.address], allowCidrs: ['127.0.0.0/8'] })
    await permissive.until(['evil evil.example.org', 'good good.example.org'])
  })
})

describe('discovery by EndpointSlices', () => {
  async function tokenFile(folder: string, token = 'pod-token'): Promise<string> {
    const path = join(folder, 'token')
    await writeFile(path, `${token}\n`)
    return path
  }

  test('lists, then follows the watch: pods come and go; one that is not ready stays', async () => {
    await using folder = await tempFolder()
    await using kubernetes = await FakeKubernetes.start()
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: '10.0.0.1' }]))
    await using running = discover({
      endpointSlice: {
        url: kubernetes.url,
        namespace: 'capture',
        labelSelector: 'app=appliance',
        port: 'api',
        tokenFile: await tokenFile(folder.path),
      },
      keepS: 0.2,
    })
    await running.until(['pod-1 10.0.0.1:8081'])
    await eventually(() => kubernetes.watchers === 1, { message: 'it watches' })
    kubernetes.put(
      makeSlice('b', [
        { name: 'pod-3', address: '10.0.0.3' },
        { name: 'pod-2', address: '10.0.0.2' },
      ]),
    )
    await running.until(['pod-1 10.0.0.1:8081', 'pod-2 10.0.0.2:8081', 'pod-3 10.0.0.3:8081'])
    kubernetes.bookmark()
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: '10.0.0.4', ready: false }]))
    await running.until(['pod-1 10.0.0.4:8081', 'pod-2 10.0.0.2:8081', 'pod-3 10.0.0.3:8081'])
    kubernetes.remove('b')
    // Nothing else happens in the directory: they expire on their own.
    await running.until(['pod-1 10.0.0.4:8081'])
    assert.equal(kubernetes.urls.length, 2)
    const [list = '', watch = ''] = kubernetes.urls
    assert.equal(
      list,
      '/apis/discovery.k8s.io/v1/namespaces/capture/endpointslices?labelSelector=app%3Dappliance',
    )
    assert.match(watch, /watch=1&resourceVersion=\d+&allowWatchBookmarks=true&timeoutSeconds=\d+$/)
  })

  test('a device that is called after its node keeps its name when another pod comes there', async () => {
    await using folder = await tempFolder()
    await using kubernetes = await FakeKubernetes.start()
    const old = { name: 'pod-1', address: '10.0.0.1', node: 'lon1' }
    kubernetes.put(makeSlice('a', [old]))
    await using running = discover({
      endpointSlice: {
        url: kubernetes.url,
        namespace: 'capture',
        nameBy: 'node',
        tokenFile: await tokenFile(folder.path),
      },
    })
    await running.until(['lon1 10.0.0.1:9090'])
    await eventually(() => kubernetes.watchers === 1, { message: 'it watches' })
    const fresh = { name: 'pod-2', address: '10.0.0.2', node: 'lon1' }
    // A Service may publish all addresses as ready.
    kubernetes.put(makeSlice('a', [{ ...old, terminating: true }, fresh]))
    await running.until(['lon1 10.0.0.2:9090'])
    const next = { name: 'pod-3', address: '10.0.0.3', node: 'lon1', ready: false }
    kubernetes.put(makeSlice('a', [next, { ...fresh, terminating: true }]))
    await running.until(['lon1 10.0.0.3:9090'])
    // A surge: the new pod starts beside the serving one.
    kubernetes.put(makeSlice('a', [next, fresh]))
    await running.until(['lon1 10.0.0.2:9090'])
    assert.deepEqual(running.logged, [])
  })

  test('lists again when the watch ends, when its version expired, and with a new token', async () => {
    await using folder = await tempFolder()
    await using kubernetes = await FakeKubernetes.start()
    const endpointSlice = {
      url: kubernetes.url,
      namespace: 'capture',
      tokenFile: await tokenFile(folder.path),
    }
    await using running = discover({ endpointSlice, keepS: 0 })
    await running.until([])
    const watched = () => eventually(() => kubernetes.watchers === 1, { message: 'it watches' })
    await watched()
    kubernetes.putUnseen(makeSlice('a', [{ name: 'pod-1', address: '10.0.0.1' }]))
    await running.until(['pod-1 10.0.0.1:9090'])
    assert.ok(running.logged.some((line) => line.includes('Expired')))
    await watched()
    kubernetes.isBroken = true
    kubernetes.endWatches()
    await eventually(() => running.logged.some((line) => line.includes('status 500')), {
      message: 'the failure is logged',
    })
    assert.deepEqual(running.found.at(-1), ['pod-1 10.0.0.1:9090'], 'the last list stands')
    kubernetes.token = 'renewed'
    await tokenFile(folder.path, 'renewed')
    kubernetes.isBroken = false
    kubernetes.put(makeSlice('a', [{ name: 'pod-2', address: '10.0.0.2' }]))
    await running.until(['pod-2 10.0.0.2:9090'])
  })

  test('closing ends a watch that is under way', async () => {
    await using folder = await tempFolder()
    await using kubernetes = await FakeKubernetes.start()
    const endpointSlice = { url: kubernetes.url, namespace: 'x', tokenFile: await tokenFile(folder.path) }
    {
      await using running = discover({ endpointSlice })
      await running.until([])
      await eventually(() => kubernetes.watchers === 1, { message: 'it watches' })
    }
    await eventually(() => kubernetes.watchers === 0, { message: 'the watch has ended' })
  })
})
