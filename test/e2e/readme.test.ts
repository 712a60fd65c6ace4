// The README to the letter: each of its commands does what the text beside it says.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import { mayCapture } from '../../src/demo/live-traffic.ts'
import { FakeDevice } from '../support/devices/fake-device.ts'
import { fleetPcap } from '../support/devices/fake-fleet.ts'
import { eventually } from '../support/eventually.ts'
import { readPcap } from '../support/packets/pcap-records.ts'
import { type DemoProcess, startDemo } from '../support/processes/demo-process.ts'
import { startTempGateway } from '../support/processes/temp-gateway.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

const README = await readFile(join(REPOSITORY_ROOT, 'README.md'), 'utf8')
const WITHOUT_CAPTURE = (await mayCapture()) ? false : 'capturing needs CAP_NET_RAW'

/** The first block of this kind after a text of the README. */
function blockBehind(text: string, kind: 'sh' | 'yaml' = 'sh'): string {
  const from = README.indexOf(text)
  assert.ok(from >= 0, `the README has no "${text}"`)
  const block = new RegExp(`\`\`\`${kind}\n([\\s\\S]*?)\`\`\``).exec(README.slice(from))?.[1]
  assert.ok(block !== undefined)
  return block
}

interface ShellEnd {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

async function runShell(script: string, cwd: string, env: Record<string, string> = {}): Promise<ShellEnd> {
  const child = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = [child.stdout, child.stderr].map((stream) => stream.toArray())
  const [status] = await once(child, 'close')
  const text = async (parts: Promise<Buffer[]> | undefined) => Buffer.concat((await parts) ?? []).toString()
  return { status, stdout: await text(stdout), stderr: await text(stderr) }
}

describe('what people come with', () => {
  const parts = new AsyncDisposableStack()
  let folder: string
  let demo: DemoProcess

  before(async () => {
    folder = parts.use(await tempFolder()).path
    demo = parts.use(await startDemo(join(folder, '.capfleet')))
  })
  after(() => parts.disposeAsync())

  /** The commands below a heading, run in the shell of the block before them. */
  async function commands(heading: string, env: Record<string, string> = {}): Promise<string> {
    const shell = blockBehind('The demo runs; in another shell:').replace(
      'http://127.0.0.1:8080',
      demo.facts.gatewayUrl,
    )
    const range = /^range=.*$/m.exec(README)?.[0]
    const script = [shell, range, blockBehind(heading)].join('\n')
    const { status, stdout, stderr } = await runShell(script, folder, env)
    assert.equal(status, 0, stderr)
    return stdout
  }

  test('a minute from three sites', async () => {
    const lines = (await commands('**A minute from three sites')).trim().split('\n')
    assert.equal(lines.length, 3)
    for (const line of lines) assert.match(line, /^09:01:59\.\d{6,9} IP/)
  })

  test('filtered and small', async () => {
    const lines = (await commands('**Filtered and small')).trim().split('\n')
    const packets = lines.slice(0, 3)
    for (const line of packets) assert.match(line, /\.53: |\.53 >/)
    const estimate = JSON.parse(lines.slice(3).join('\n'))
    assert.ok(Number(estimate.packets) > 10_000, estimate.packets)
    assert.equal(estimate.devices.length, 3)
  })

  test('what there is', async () => {
    const said = await commands('**What there is')
    for (const name of ['nyc1', 'lon1', 'sgp1']) assert.ok(said.includes(name))
    assert.match(said, /"requests":\[/)
    assert.match(said, /"StreamList":true/)
    assert.ok(readPcap(await readFile(join(folder, 'demo.pcap'))).records.length >= 100_000)
  })

  test('live, as the packets come', { skip: WITHOUT_CAPTURE }, async () => {
    const lines = (await commands('**Live, as the packets come')).trim().split('\n')
    assert.equal(lines.filter((line) => / IP6? /.test(line)).length, 20, 'packets')
    for (const line of lines.slice(20)) assert.ok(JSON.parse(line))
    assert.ok(lines.length > 20, 'telemetry')
  })

  test('start and stop a capture', { skip: WITHOUT_CAPTURE }, async () => {
    const said = await commands('**Start and stop a capture')
    assert.match(said, /successfully stopped capture/)
    assert.match(said, /successfully started capture \[incident-7\]/)
  })

  test('a day of it, by tomorrow', async () => {
    const said = await commands('**A day of it')
    assert.match(said, /^data: .*"state":"complete"/m)
    const manifest = JSON.parse(said.slice(said.indexOf('{\n')))
    const bytes = await readFile(join(folder, 'export.pcap.zst'))
    assert.equal(hash('sha256', bytes), manifest.files[0].sha256)
    assert.equal(manifest.reason, 'case-7')
  })

  test('less for others', async () => {
    const [device, token, ticket] = (await commands('**Less for others')).split(
      /(?<=\})\n?(?=\{"(?:kind|url))/,
    )
    assert.equal(JSON.parse(device ?? '').name, 'lon1')
    const { scopes, bounds, token: bearer } = JSON.parse(token ?? '')
    assert.deepEqual(
      [scopes, bounds.devices, bounds.filters],
      [['capture:download'], ['lon*'], ['udp port 53']],
    )
    const { url } = JSON.parse(ticket ?? '')
    const { gatewayUrl } = demo.facts
    const get = (path: string, headers = {}) => fetch(`${gatewayUrl}${path}`, { headers })
    const linked = await get(url)
    assert.ok(readPcap(Buffer.from(await linked.arrayBuffer())).records.length > 1_000)
    assert.equal((await get(url)).status, 403, 'a link is good once')
    const other = await get('/devices/nyc1/api/v1/pcap/single?StreamName=demo', {
      authorization: `Bearer ${bearer}`,
    })
    assert.equal(other.status, 404)
  })

  test('the same without curl', async () => {
    const config = join(folder, 'config')
    await symlink(join(REPOSITORY_ROOT, 'src'), join(folder, 'src'))
    await commands('**The same without curl', { XDG_CONFIG_HOME: config })
    const packets = readPcap(await readFile(join(folder, 'dns.pcap'))).records
    assert.ok(packets.length > 100)
    const [exported = ''] = (await readdir(folder)).filter((name) => /^fleet_.*\.zst$/.test(name))
    assert.ok((await stat(join(folder, exported))).size > 1_000_000)
  })
})

const PCAP = fleetPcap(0, 400)
const DELIVERED = 250
const INSIDE_A_RECORD = 20

test('it broke off: continue, in the same file', async () => {
  await using folder = await tempFolder()
  await using redis = await TempRedis.create()
  await using device = await FakeDevice.start('d0', PCAP)
  await using gateway = await startTempGateway([device], redis.url)
  const shell = blockBehind('The demo runs; in another shell:')
    .replace('http://127.0.0.1:8080', gateway.url)
    .replace('--netrc-file .capfleet/netrc', '-H "$AUTH"')
  const lines = blockBehind('**It broke off')
    .replace(/TSBegin=[^"]*/, 'TSBegin=-1h&TSEnd=now')
    .split('\n')
  const cut = lines.findIndex((line) => line.includes('# breaks off'))
  assert.ok(cut > 0)
  const env = { AUTH: `authorization: ${gateway.as.user.authorization}` }
  const run = (some: readonly string[]) => runShell([shell, ...some].join('\n'), folder.path, env)
  device.behaviour = { dieAfterBytes: fleetPcap(0, DELIVERED).length + INSIDE_A_RECORD }
  const broken = await run(lines.slice(0, cut + 1))
  assert.match(broken.stderr, /curl: \((18|56)\)/)
  device.behaviour = {}
  const rest = await run(lines.filter((_, index) => index !== cut))
  assert.equal(rest.status, 0, rest.stderr)
  assert.ok((await readFile(join(folder.path, 'day.pcap'))).equals(PCAP))
})

describe('a fleet of your own', () => {
  const parts = new AsyncDisposableStack()
  after(() => parts.disposeAsync())
  /* A program that keeps running; resolves with the address in its "ready" line. */
  async function start(command: string, cwd: string): Promise<string> {
    const child = spawn('bash', ['--norc', '-c', `exec ${command}`], {
      cwd,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    parts.defer(() => ended(child))
    for await (const line of createInterface({ input: child.stdout })) {
      const address = /ready (\S+)/.exec(line)?.[1]
      if (address !== undefined) return address
    }
    throw new Error(`${command} did not start`)
  }

  test('works as printed', async () => {
    const folder = parts.use(await tempFolder()).path
    const lines = blockBehind('`appliance.yaml`, on each capture machine', 'sh')
      .replaceAll('src/capfleet', join(REPOSITORY_ROOT, 'src/capfleet'))
      .split('\n')
      .map((line) => line.replace(/ +#.*$/, ''))
    const line = (word: string): string => {
      const found = lines.find((one) => one.includes(word))
      assert.ok(found !== undefined, word)
      return found.replace(/ &$/, '')
    }
    const anyPort = (yaml: string) => yaml.replace(/port: \d+/, 'port: 0')
    await mkdir(join(folder, 'store'))
    await writeFile(
      join(folder, 'appliance.yaml'),
      anyPort(blockBehind('`appliance.yaml`, on each capture machine', 'yaml')),
    )
    await writeFile(join(folder, 'a.pcap'), fleetPcap(0, 10))
    await writeFile(join(folder, 'b.pcapng'), fleetPcap(1, 10))
    const user = await runShell(`echo 'a long password' | ${line('user add')}`, folder)
    assert.equal(user.status, 0, user.stderr)
    assert.match(await readFile(join(folder, 'users.yaml'), 'utf8'), /^ {4}since: \d{4}-\d\d-\d\dT[\d:]+Z$/m)
    const password = await runShell(`echo 'a long password' | ${line('lon1-password')}`, folder)
    assert.equal(password.status, 0, password.stderr)
    assert.equal((await stat(join(folder, 'lon1-password'))).mode & 0o077, 0)
    await start(line(' recorder '), folder)
    const device = await start(line(' appliance --config'), folder)
    const gatewayYaml = anyPort(blockBehind('`gateway.yaml`; every setting', 'yaml'))
    const anyWorkerPort = 'exports: { worker: { listen: { port: 0 } } }\n'
    const ownDevice = gatewayYaml.replace('http://127.0.0.1:8081', device)
    await writeFile(join(folder, 'gateway.yaml'), ownDevice + anyWorkerPort)
    // Both start at the same time, as in the shell commands.
    const [gateway] = await Promise.all([start(line(' gateway '), folder), start(line(' worker '), folder)])
    const doctor = await runShell(line(' doctor '), folder)
    assert.ok(doctor.status <= 1 && doctor.stdout !== '', doctor.stderr)
    const imported = await runShell(line(' import '), folder)
    assert.equal(imported.status, 0, imported.stderr)
    const headers = { authorization: `Basic ${btoa('ann:a long password')}` }
    await eventually(
      async () => {
        const list = (await (await fetch(`${gateway}/stream/list`, { headers })).json()) as {
          List: { Path: string }[]
        }
        return (
          list.List.map(({ Path }) => Path)
            .sort()
            .join() === 'a,b'
        )
      },
      { message: 'the gateway lists both captures' },
    )
  })
})

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  await exit
}

test('it has 150 lines at most', () => {
  assert.ok(README.trimEnd().split('\n').length <= 150)
})
