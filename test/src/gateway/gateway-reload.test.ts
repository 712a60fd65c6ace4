// A gateway as the command line starts it, while its configuration file changes.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createPlainServer } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { startGatewayFromFile } from '../../../src/gateway/gateway.ts'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { createTempCertificate, type TempCertificate } from '../../support/access/temp-certificate.ts'
import type { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap, startFakeFleet } from '../../support/devices/fake-fleet.ts'
import { eventually } from '../../support/eventually.ts'
import { OWN_LOOPBACK } from '../../support/network/own-loopback.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { FakeKubernetes, makeSlice } from '../../support/servers/fake-kubernetes.ts'
import { DEVICE_PASSWORD } from '../../support/suite-secrets.ts'
import { type TempFolder, tempFolder } from '../../support/temp-folder.ts'

const PACKETS = 3_000
const TIMERANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`
const STOP_LIMIT_MS = 30_000

describe('a gateway whose configuration changes', () => {
  let redis: TempRedis
  let folder: TempFolder
  let devices: FakeDevice[]
  let certificate: TempCertificate
  let gateway: Awaited<ReturnType<typeof startGatewayFromFile>> | undefined

  before(async () => {
    redis = await TempRedis.create()
    folder = await tempFolder()
    devices = await startFakeFleet(PACKETS)
    certificate = await createTempCertificate()
    await putUser(join(folder.path, 'users.yaml'), { name: 'full', role: 'full' }, 'secret')
    await writeFile(join(folder.path, 'password'), `${DEVICE_PASSWORD}\n`)
    await writeFile(join(folder.path, 'token'), 'device-token\n')
  })
  after(async () => {
    for (const device of devices) await device[Symbol.asyncDispose]()
    await certificate[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
    await redis[Symbol.asyncDispose]()
  })
  afterEach(async () => {
    await gateway?.close(0)
    gateway = undefined
    for (const device of devices) device.behaviour = {}
  })

  const entryOf = ({ name, url }: FakeDevice) => ({
    name,
    url,
    user: 'gateway',
    password: { file: 'password' },
  })
  const path = () => join(folder.path, 'gateway.yaml')
  const write = (settings: Record<string, unknown>) =>
    writeFile(
      path(),
      JSON.stringify({
        listen: { port: 0 },
        redis: { url: redis.url },
        auth: { users: 'users.yaml' },
        logLevel: 'silent',
        timeZone: 'UTC',
        ...settings,
      }),
    )
  const start = async (settings: Record<string, unknown>) => {
    await write(settings)
    gateway = await startGatewayFromFile(path())
  }
  const ask = (target: string) =>
    fetch(`${gateway?.address}${target}`, { headers: { authorization: `Basic ${btoa('full:secret')}` } })
  const reports = async () =>
    ((await (await ask('/v1/devices')).json()) as { devices: Record<string, unknown>[] }).devices
  const names = async () => (await reports()).map(({ name }) => name).join()
  const untilNames = (expected: string) =>
    eventually(async () => (await names()) === expected, { message: `devices ${expected}` })
  /** SIGHUP reloads all files; the reloaded users show that the signal arrived. */
  const untilHangupIsHeard = async () => {
    const users = join(folder.path, 'users.yaml')
    const others = await readFile(users, 'utf8')
    await putUser(users, { name: 'full', role: 'viewer' }, 'secret')
    process.kill(process.pid, 'SIGHUP')
    const isViewer = async () => (await ask('/devices/d0/pcap/del?StreamName=x')).status === 403
    await eventually(isViewer, { message: 'the users were read again' })
    await writeFile(users, others)
  }

  test('devices come, change and go; a running download of one that goes ends whole', async () => {
    const [d0, d1, d2] = devices as [FakeDevice, FakeDevice, FakeDevice]
    await start({ devices: [entryOf(d0), entryOf(d1)] })
    assert.equal(await names(), 'd0,d1')
    const { promise: resumed, resolve: resume } = Promise.withResolvers<void>()
    d0.behaviour = { hangAfterBytes: 40_000, resumed }
    const running = await ask(`/devices/d0${TIMERANGE}`)
    assert.equal(running.status, 200)
    await write({ devices: [entryOf(d1), entryOf(d2)] })
    await untilNames('d1,d2')
    const onNew = await ask(`/devices/d2${TIMERANGE}`)
    assert.ok(Buffer.from(await onNew.arrayBuffer()).equals(fleetPcap(2, PACKETS)))
    assert.equal((await ask(`/devices/d0${TIMERANGE}`)).status, 404, 'd0 takes no new download')
    assert.equal(d0.readers, 1, 'the download still runs')
    resume()
    assert.ok(Buffer.from(await running.arrayBuffer()).equals(fleetPcap(0, PACKETS)))
  })

  test('the metrics are closed to callers without credentials, unless auth.anonymousMetrics opens them', async () => {
    const [d0] = devices as [FakeDevice]
    await start({ devices: [entryOf(d0)] })
    assert.equal((await fetch(`${gateway?.address}/metrics`)).status, 401)
    assert.equal((await ask('/metrics')).status, 200)
    assert.equal((await fetch(`${gateway?.address}/livez`)).status, 200)
  })

  test('a key that comes signs new tokens, and one that goes takes its tokens along', async () => {
    const [d0] = devices as [FakeDevice]
    await start({ devices: [entryOf(d0)], home: 'home' })
    const issue = async () => {
      const headers = { authorization: `Basic ${btoa('full:secret')}` }
      const answer = await fetch(`${gateway?.address}/v1/tokens`, { method: 'POST', headers })
      const { token } = (await answer.json()) as { token: string }
      const { kid } = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())
      return { token, kid }
    }
    const statusOf = async (token: string) =>
      (await fetch(`${gateway?.address}/v1/devices`, { headers: { authorization: `Bearer ${token}` } }))
        .status
    const old = await issue()
    const keys = join(folder.path, 'home', 'token-keys')
    await writeFile(join(keys, 'second.secret'), Buffer.alloc(32, 1))
    const signsAnew = async () => (await issue()).kid === 'second'
    await eventually(signsAnew, { message: 'the new key signs' })
    assert.deepEqual([old.kid, await statusOf(old.token)], ['first', 200])
    await rm(join(keys, 'first.pem'))
    const isRefused = async () => (await statusOf(old.token)) === 401
    await eventually(isRefused, { message: 'the old key is gone' })
    assert.equal(await statusOf((await issue()).token), 200)
  })

  test('events of a device end for a removed user', async () => {
    const device = createPlainServer((req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      if (req.url?.startsWith('/api/v1/system/events')) res.write('retry: 2000\n\n')
      else res.end('{}')
    })
    await once(device.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(device.address() as AddressInfo).port}`
    const users = join(folder.path, 'users.yaml')
    const others = await readFile(users, 'utf8')
    await putUser(users, { name: 'ann', role: 'user' }, 'secret')
    try {
      await start({ devices: [{ name: 'live', url, user: 'gateway', password: { file: 'password' } }] })
      const asAnn = { headers: { authorization: `Basic ${btoa('ann:secret')}` } }
      const events = await fetch(`${gateway?.address}/devices/live/api/v1/system/events`, asAnn)
      assert.equal(events.status, 200)
      await writeFile(users, others)
      await assert.rejects(events.text())
    } finally {
      await writeFile(users, others)
      device.closeAllConnections()
      device.close()
    }
  })

  test('a removed user is cut off, with a receipt that says why; others continue', async () => {
    const [d0, d1] = devices as [FakeDevice, FakeDevice]
    const users = join(folder.path, 'users.yaml')
    const others = await readFile(users, 'utf8')
    await putUser(users, { name: 'ann', role: 'user' }, 'secret')
    await start({ devices: [entryOf(d0), entryOf(d1)] })
    const { promise: resumed, resolve: resume } = Promise.withResolvers<void>()
    for (const device of [d0, d1]) device.behaviour = { hangAfterBytes: 40_000, resumed }
    const asAnn = { headers: { authorization: `Basic ${btoa('ann:secret')}` } }
    const cut = await fetch(`${gateway?.address}/devices/d0${TIMERANGE}`, asAnn)
    const whole = await ask(`/devices/d1${TIMERANGE}`)
    const merged = await fetch(`${gateway?.address}${TIMERANGE}`, asAnn)
    assert.deepEqual([cut.status, whole.status, merged.status], [200, 200, 200])
    await writeFile(users, others)
    await assert.rejects(cut.arrayBuffer())
    await assert.rejects(merged.arrayBuffer())
    resume()
    assert.ok(Buffer.from(await whole.arrayBuffer()).equals(fleetPcap(1, PACKETS)))
    const again = await fetch(`${gateway?.address}/v1/devices`, asAnn)
    assert.equal(again.status, 401)
    for (const { headers } of [cut, merged]) {
      const receipt = await ask(`/v1/requests/${headers.get('capfleet-request-id')}`)
      const { status, error } = (await receipt.json()) as { status: string; error: { code: string } }
      assert.deepEqual([status, error.code], ['failed', 'unauthenticated'])
    }
    await eventually(() => d0.readers === 0 && d1.readers === 0, { message: 'the devices are left' })
  })

  test('a removed user whose download is all that a gateway waits for is cut off', async () => {
    const [d0] = devices as [FakeDevice]
    const users = join(folder.path, 'users.yaml')
    const others = await readFile(users, 'utf8')
    await putUser(users, { name: 'ann', role: 'user' }, 'secret')
    await start({ devices: [entryOf(d0)] })
    d0.behaviour = { hangAfterBytes: 40_000 }
    const headers = { authorization: `Basic ${btoa('ann:secret')}` }
    const cut = await fetch(`${gateway?.address}/devices/d0${TIMERANGE}`, { headers })
    const ended = gateway?.close(STOP_LIMIT_MS)
    await writeFile(users, others)
    await assert.rejects(cut.arrayBuffer())
    await ended
  })

  test('a link of a user who may not download any more is worth nothing', async () => {
    const [d0] = devices as [FakeDevice]
    const users = join(folder.path, 'users.yaml')
    const others = await readFile(users, 'utf8')
    await putUser(users, { name: 'ann', role: 'user' }, 'secret')
    await start({ devices: [entryOf(d0)] })
    const headers = { authorization: `Basic ${btoa('ann:secret')}` }
    const order = `/v1/tickets?For=${encodeURIComponent(`/devices/d0${TIMERANGE}`)}`
    const made = await fetch(`${gateway?.address}${order}`, { method: 'POST', headers })
    const { url } = (await made.json()) as { url: string }
    const asUser = await readFile(users, 'utf8')
    await writeFile(users, asUser.replace(/(name: ann\n\s+role: )user/, '$1viewer'))
    try {
      const mayNot = async () =>
        (await fetch(`${gateway?.address}${order}`, { method: 'POST', headers })).status
      await eventually(async () => (await mayNot()) === 403, { message: 'ann is a viewer' })
      const refused = await fetch(`${gateway?.address}${url}`)
      const { code } = (await refused.json()) as { code: string }
      assert.deepEqual([refused.status, code], [403, 'insufficient-scope'])
    } finally {
      await writeFile(users, others)
    }
  })

  test('a changed password is used from then on, also when only its file changed and SIGHUP came', async () => {
    const [d0] = devices as [FakeDevice]
    await writeFile(join(folder.path, 'rotating'), 'wrong')
    const entry = { ...entryOf(d0), password: { file: 'rotating' } }
    await start({ devices: [entry] })
    assert.deepEqual(
      (await reports()).map(({ reachable, error }) => [reachable, (error as { code: string } | null)?.code]),
      [[false, 'device-rejected']],
    )
    await writeFile(join(folder.path, 'rotating'), DEVICE_PASSWORD)
    process.kill(process.pid, 'SIGHUP')
    await eventually(async () => (await reports())[0]?.reachable === true, {
      message: 'the new password is used',
    })
  })

  for (const [what, broken] of [
    ['that is no YAML', 'devices: [{'],
    ['with an unknown key', undefined],
    ['that names a missing secret', { password: { file: 'no-such-file' } }],
  ] as const) {
    test(`a file ${what} changes nothing`, async () => {
      const [d0, d1] = devices as [FakeDevice, FakeDevice]
      await start({ devices: [entryOf(d0)] })
      if (typeof broken === 'string') await writeFile(path(), broken)
      else await write({ devices: [entryOf(d1), { ...entryOf(d0), ...(broken ?? { streems: 1 }) }] })
      await untilHangupIsHeard()
      assert.equal(await names(), 'd0')
      await write({ devices: [entryOf(d0), entryOf(d1)] })
      await untilNames('d0,d1')
    })
  }

  test('discovered devices join those of the file', async () => {
    const [d0, d1] = devices as [FakeDevice, FakeDevice]
    await using kubernetes = await FakeKubernetes.start({
      key: await readFile(certificate.key),
      cert: await readFile(certificate.cert),
    })
    await writeFile(join(folder.path, 'pod-token'), 'pod-token')
    await start({
      devices: [entryOf(d0)],
      deviceDiscovery: [
        {
          endpointSlice: {
            url: kubernetes.url,
            namespace: 'capture',
            port: 'api',
            tokenFile: 'pod-token',
            caFile: certificate.cert,
          },
          scheme: 'http',
          keepS: 0,
          allowCidrs: [`${OWN_LOOPBACK}/32`],
          site: 'k8s',
          user: 'gateway',
          password: { file: 'password' },
        },
      ],
    })
    await untilNames('d0')
    kubernetes.put(makeSlice('a', [{ name: 'pod-1', address: OWN_LOOPBACK }], d1.port))
    await untilNames('d0,pod-1')
    const answer = await ask(`${TIMERANGE}&Device=site=k8s`)
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(fleetPcap(1, PACKETS)))
    kubernetes.remove('a')
    await untilNames('d0')
  })

  test('a device with its own token and certificate is trusted by its ca alone', async () => {
    const seen: (string | undefined)[] = []
    const server: Server = createServer(
      { key: await readFile(certificate.key), cert: await readFile(certificate.cert) },
      (req, res) => {
        seen.push(req.headers.authorization)
        if (req.url?.startsWith('/api/v1/pcap/')) res.end(fleetPcap(0, 10))
        else res.end('{"version":"2.0.0"}')
      },
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    using _server = {
      [Symbol.dispose]() {
        server.closeAllConnections()
        server.close()
      },
    }
    const url = `https://localhost:${(server.address() as AddressInfo).port}`
    const entry = { url, token: { file: 'token' } }
    await start({
      devices: [
        { ...entry, name: 'trusted', ca: certificate.cert },
        { ...entry, name: 'untrusted', url: url.replace('localhost', '127.0.0.1') },
      ],
    })
    assert.deepEqual(
      (await reports()).map(({ name, reachable, version }) => [name, reachable, version]),
      [
        ['trusted', true, '2.0.0'],
        ['untrusted', false, null],
      ],
    )
    const [download, control] = [await ask(`/devices/trusted${TIMERANGE}`), await ask('/devices/trusted/x')]
    assert.ok(Buffer.from(await download.arrayBuffer()).equals(fleetPcap(0, 10)))
    assert.equal(await control.text(), '{"version":"2.0.0"}')
    for (const target of [`/devices/untrusted${TIMERANGE}`, '/devices/untrusted/x'])
      assert.equal((await ask(target)).status, 502, target)
    assert.deepEqual([...new Set(seen)], ['Bearer device-token'])
  })
})
