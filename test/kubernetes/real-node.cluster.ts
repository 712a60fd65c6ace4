// The chart on one real node: gateways, workers, Redis and two appliances with captures, in containers of the images,
// accessed through the ClusterIP. `npm run test:kubernetes` runs this inside test/kubernetes/with-real-node.sh.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { eventually } from '../support/eventually.ts'
import { CHART } from '../support/helm/chart.ts'
import { httpGet, httpOpen } from '../support/http-get.ts'
import { apply, helm, kubectl, serveClusterDns } from '../support/kubernetes/cluster.ts'
import { downloadAllTheTime } from '../support/kubernetes/steady-downloads.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

const { KUBECONFIG = '', NODE_IP = '' } = process.env
const NAMESPACE = 'fleet'
const START_NS = 1_795_000_000_000_000_000n
const PACKETS = 20_000
const END_NS = START_NS + BigInt(PACKETS) * 1_000_000n
const WEST_PORT = 8_091

/** Values for both releases in addition to their own: a machine with two processors is the whole cluster. */
const SMALL = {
  imageRegistry: 'localhost',
  initResources: { requests: { cpu: '10m', memory: '32Mi' } },
  fleetLogin: { existingSecret: 'fleet-login' },
}
const TINY_REQUESTS = { resources: { requests: { cpu: '50m', memory: '128Mi' } } }

describe('the chart on a real node', () => {
  const parts = new AsyncDisposableStack()
  const folder = join(dirname(KUBECONFIG), 'test')
  const storeOf = (device: string) => join(folder, device)
  let url = ''
  let login = ''
  let installedAtMs = 0
  const say = (text: string) => process.stderr.write(`real node: ${text}\n`)

  before(async () => {
    assert.ok(KUBECONFIG !== '' && NODE_IP !== '', 'run it by npm run test:kubernetes')
    parts.use(await serveClusterDns(NODE_IP))
    await mkdir(folder)
    for (const device of ['east', 'west']) await fillStore(device)
    await kubectl('create', 'namespace', NAMESPACE)
    await kubectl('label', 'node', 'node-0', 'capfleet.io/capture=true')
    await kubectl(
      '-n',
      NAMESPACE,
      'create',
      'secret',
      'generic',
      'fleet-login',
      '--from-literal=password=between-us-and-nobody',
    )
    await apply(...(await Promise.all(['redis', 'shared'].map(volume))))
    await install(
      'west',
      {
        gateway: { enabled: false },
        appliance: {
          ...TINY_REQUESTS,
          recorder: TINY_REQUESTS,
          config: { deviceName: 'west', listen: { port: WEST_PORT } },
          store: { hostPath: storeOf('west') },
        },
      },
      '--wait',
      '--timeout',
      '60s',
    )
  })
  after(async () => {
    await parts.disposeAsync()
  })

  /** Every second packet of the whole is on this device. */
  async function fillStore(device: string): Promise<void> {
    const mine = packets().filter((_, index) => (index % 2 === 0) === (device === 'east'))
    const file = join(folder, `${device}-capture.pcap`)
    await writeFile(file, makePcap(mine))
    await mkdir(storeOf(device))
    // The appliance's group may read it, as the recorder's container creates it.
    const capfleet = [
      join(REPOSITORY_ROOT, 'src/capfleet'),
      'import',
      file,
      '--create',
      '--store',
      storeOf(device),
    ]
    await promisify(execFile)('setpriv', ['--regid', '10001', '--clear-groups', ...capfleet])
  }

  /** A volume that matches the first claim of its size; there is no provisioner. */
  async function volume(name: string): Promise<object> {
    const path = join(folder, name)
    await mkdir(path, { mode: 0o777 })
    await promisify(execFile)('chown', ['10001:10001', path])
    const isShared = name === 'shared'
    return {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        capacity: { storage: isShared ? '100Gi' : '8Gi' },
        accessModes: [isShared ? 'ReadWriteMany' : 'ReadWriteOnce'],
        hostPath: { path },
      },
    }
  }

  async function install(release: string, values: object, ...options: readonly string[]): Promise<void> {
    const file = join(folder, `${release}-values.json`)
    await writeFile(file, JSON.stringify({ ...SMALL, ...values }))
    await helm('upgrade', '--install', release, CHART, '--namespace', NAMESPACE, '--values', file, ...options)
  }

  const fleetValues = (round: number) => ({
    gateway: { ...TINY_REQUESTS, podAnnotations: { round: String(round) } },
    worker: { ...TINY_REQUESTS, replicas: 1 },
    redis: TINY_REQUESTS,
    storage: { enabled: true },
    secrets: { west: 'fleet-login' },
    config: {
      devices: [
        {
          name: 'west',
          url: `http://${NODE_IP}:${WEST_PORT}`,
          user: 'gateway',
          password: { file: 'secrets/west/password' },
        },
      ],
    },
    appliance: {
      ...TINY_REQUESTS,
      recorder: TINY_REQUESTS,
      config: { deviceName: 'east' },
      store: { hostPath: storeOf('east') },
    },
  })

  const range = () => {
    const query = { TSUnit: 'nanos', TSBegin: String(START_NS), TSEnd: String(END_NS) }
    return `/api/v1/pcap/timerange?${new URLSearchParams(query)}`
  }

  test('serves its first merged download soon after helm install', async () => {
    installedAtMs = performance.now()
    await install('capfleet', fleetValues(1))
    say(`helm install returned after ${seconds(installedAtMs)} s`)
    const secret = JSON.parse(
      await kubectl('-n', NAMESPACE, 'get', 'secret', 'capfleet-first-user', '-o', 'json'),
    ).data
    const text = (name: string) => Buffer.from(secret[name], 'base64').toString()
    login = `Basic ${Buffer.from(`${text('username')}:${text('password')}`).toString('base64')}`
    const ip = await kubectl(
      '-n',
      NAMESPACE,
      'get',
      'service',
      'capfleet-gateway',
      '-o',
      'jsonpath={.spec.clusterIP}',
    )
    url = `http://${ip}`
    const expected = makePcap(packets())
    let body: Buffer | undefined
    let last = ''
    const ask = async () => {
      const response = await fetch(`${url}${range()}`, {
        headers: { authorization: login },
        signal: AbortSignal.timeout(5_000),
      })
      const bytes = Buffer.from(await response.arrayBuffer())
      last = response.status === 200 ? `${bytes.length} bytes` : `${response.status} ${bytes}`
      if (response.status === 200 && bytes.length === expected.length) body = bytes
    }
    await eventually(
      async () => {
        await ask().catch((error: unknown) => {
          last = String(error)
        })
        return body !== undefined
      },
      { message: 'a download of both devices' },
    ).catch((error: Error) => assert.fail(`${error.message}; the last answer: ${last}`))
    say(`the first merged download was complete ${seconds(installedAtMs)} s after helm install`)
    assert.ok(body?.equals(expected))
  })

  async function gatewayPods(): Promise<number> {
    const selector = 'app.kubernetes.io/instance=capfleet,app.kubernetes.io/component=gateway'
    const names = await kubectl('-n', NAMESPACE, 'get', 'pods', '-l', selector, '-o', 'name')
    return names.trim().split('\n').length
  }

  test('becomes ready as a whole', async () => {
    await kubectl('-n', NAMESPACE, 'wait', '--for=condition=Ready', 'pod', '--all', '--timeout=180s')
    assert.equal(await gatewayPods(), 3)
    say(`all pods are ready ${seconds(installedAtMs)} s after helm install`)
  })

  test('takes a session of one gateway at all of them', async () => {
    const selector = 'app.kubernetes.io/instance=capfleet,app.kubernetes.io/component=gateway'
    const columns = 'jsonpath={.items[*].status.podIP}'
    const found = await kubectl('-n', NAMESPACE, 'get', 'pods', '-l', selector, '-o', columns)
    const urls = found.split(' ').map((ip) => `http://${ip}:8080/v1/session`)
    const [first = ''] = urls
    const signedIn = await httpGet(first, { method: 'POST', headers: { authorization: login } })
    const [cookie = ''] = (signedIn.headers['set-cookie']?.[0] ?? '').split(';')
    const answers = urls.map(async (gateway) => (await httpGet(gateway, { headers: { cookie } })).status)
    assert.deepEqual(await Promise.all(answers), [200, 200, 200])
  })

  const times = ['--unit', 'nanos', '--begin', String(START_NS), '--end', String(END_NS)]

  async function capfleet(...args: readonly string[]): Promise<string> {
    const [, user = '', password = ''] =
      /^(.*?):(.*)$/.exec(Buffer.from(login.slice(6), 'base64').toString()) ?? []
    const env = { ...process.env, CAPFLEET_URL: url, CAPFLEET_USER: user, CAPFLEET_PASSWORD: password }
    const ended = await promisify(execFile)(join(REPOSITORY_ROOT, 'src/capfleet'), args, { env })
    return ended.stdout.trim()
  }

  /** Counts how often `capfleet get` delivered the whole file, until the upgrade is over; fails when it does not. */
  async function getUntil(isOver: () => boolean): Promise<number> {
    const file = join(folder, 'got.pcap')
    let count = 0
    while (!isOver()) {
      await capfleet('get', ...times, '--wait', '55', '--force', '--output', file)
      assert.ok((await readFile(file)).equals(makePcap(packets())))
      count += 1
    }
    return count
  }

  test('exports the same by a worker', async () => {
    const file = join(folder, 'exported.pcap')
    const created = await capfleet('export', 'create', ...times, '--watch')
    await capfleet('export', 'get', created.split('\n')[0] ?? '', '--output', file)
    assert.ok((await readFile(file)).equals(makePcap(packets())))
  })

  test('passes helm test', async () => {
    assert.match(
      await helm('test', 'capfleet', '--namespace', NAMESPACE, '--timeout', '120s'),
      /Phase:\s+Succeeded/,
    )
  })

  test('upgrades under load without a failed transfer', async () => {
    const sha256 = createHash('sha256').update(makePcap(packets())).digest('hex')
    const load = downloadAllTheTime({
      url: `${url}${range()}`,
      authorization: login,
      sha256,
      clients: 64,
      // Bytes that these clients have not read are in the kernel of a gateway that has long finished its answers.
      slow: { clients: 16, pauseMs: 40 },
    })
    await eventually(() => load.done() >= 64, { message: 'the load runs' })
    const startedAtMs = performance.now()
    let isOver = false
    const gets = getUntil(() => isOver)
    const before = load.done()
    await install('capfleet', fleetValues(2), '--wait', '--timeout', '300s')
    await eventually(async () => (await gatewayPods()) === 3, { message: 'the old gateways have ended' })
    const during = load.done() - before
    say(`the upgrade took ${seconds(startedAtMs)} s`)
    isOver = true
    say(`capfleet get brought ${await gets} whole files home meanwhile`)
    const { transfers, handedBack, failures } = await load.end()
    say(
      `${transfers} transfers, ${during} of them during the upgrade; ${handedBack} answers 503 with Retry-After; ${failures.length} failed`,
    )
    assert.deepEqual(failures, [])
    assert.ok(during > 64)
  })

  test('captures until the downloads of an appliance that leaves have ended', async () => {
    const selector = 'app.kubernetes.io/instance=west,app.kubernetes.io/component=appliance'
    const pod = (await kubectl('-n', NAMESPACE, 'get', 'pods', '-l', selector, '-o', 'name')).trim()
    /** When a container of the pod logged its last line. */
    const lastWord = async (container: string): Promise<string> => {
      const said = await kubectl('-n', NAMESPACE, 'logs', '--follow', '--timestamps', pod, '-c', container)
      const last = said.trim().split('\n').at(-1) ?? ''
      assert.match(last, new RegExp(`${container}\\.stopped`))
      return last.split(' ')[0] ?? ''
    }
    const device = `http://${NODE_IP}:${WEST_PORT}`
    const user = 'gateway:between-us-and-nobody'
    using download = await httpOpen(`${device}${range()}`, { user })
    const ends = Promise.all(['appliance', 'recorder'].map(lastWord))
    await kubectl('-n', NAMESPACE, 'delete', '--wait=false', pod)
    const isLeaving = () =>
      httpGet(`${device}/readyz`).then(
        ({ status }) => status === 503,
        () => true,
      )
    await eventually(isLeaving, { message: 'the appliance is about to leave' })
    const whole = makePcap(packets().filter((_, index) => index % 2 === 1))
    assert.ok((await buffer(download.response)).equals(whole))
    const [applianceEnd = '', recorderEnd = ''] = await ends
    assert.ok(applianceEnd < recorderEnd, `${applianceEnd}, ${recorderEnd}`)
    say(`the recorder ended behind its appliance: ${applianceEnd}, ${recorderEnd}`)
  })
})

function packets() {
  return Array.from({ length: PACKETS }, (_, index) =>
    makePacket(START_NS + BigInt(index) * 1_000_000n, `packet ${index}`, 400),
  )
}

function seconds(sinceMs: number): string {
  return ((performance.now() - sinceMs) / 1_000).toFixed(1)
}
