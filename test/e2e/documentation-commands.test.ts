// The commands of the documentation and of the README, and the programs of the examples: each does what stands beside
// it, or is on a list with the reason.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { Command } from 'commander'
import { parse } from 'yaml'
import { z } from 'zod'
import { applianceConfigSchema } from '../../appliance/appliance-config.ts'
import { addClientCommands, CLIENT_COMMANDS } from '../../src/client/command/client-commands.ts'
import { createProgram } from '../../src/client/command/command-line.ts'
import { parsePageState } from '../../src/console/base/page-url.ts'
import { TOUR_QUESTIONS } from '../../src/console/tour/tour-questions.ts'
import { mayCapture } from '../../src/demo/live-traffic.ts'
import { gatewayConfigSchema } from '../../src/gateway/gateway-config.ts'
import { boundsSchema } from '../../src/shared/auth/bounds.ts'
import { ROLES } from '../../src/shared/base/scopes.ts'
import { FakeDevice } from '../support/devices/fake-device.ts'
import { fleetPcap } from '../support/devices/fake-fleet.ts'
import { codeBlocksOf } from '../support/documents/markdown.ts'
import { eventually } from '../support/eventually.ts'
import { readPcap } from '../support/packets/pcap-records.ts'
import { type DemoProcess, startDemo } from '../support/processes/demo-process.ts'
import { startReady } from '../support/processes/ready-program.ts'
import { startTempGateway } from '../support/processes/temp-gateway.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

const read = (path: string): string => readFileSync(join(REPOSITORY_ROOT, path), 'utf8')
const TASKS = 'docs/guides/common-tasks.md'
const FLEET = 'docs/get-started/fleet.md'
const CLIENTS = 'docs/guides/clients.md'
const DEMO = 'docs/get-started/demo.md'
const EXAMPLES = join(REPOSITORY_ROOT, 'examples')
const execute = promisify(execFile)
const WITHOUT_CAPTURE = (await mayCapture()) ? false : 'capturing needs CAP_NET_RAW'

/** The blocks below a heading of a page; the first kind is that of commands. */
function blocksBelow(page: string, heading: string, kind = 'sh'): readonly string[] {
  const blocks = codeBlocksOf(read(page)).filter((block) => block.heading === heading && block.kind === kind)
  assert.ok(blocks.length > 0, `${page} has no block "${kind}" below "${heading}"`)
  return blocks.map(({ text }) => text)
}

/** `gw` and `get`, as the page of common tasks defines them. */
function preamble(gatewayUrl: string): string {
  const [first = ''] = blocksBelow(TASKS, 'Common tasks')
  const command = 'capfleet() { src/capfleet "$@"; }'
  return [first.replace('http://127.0.0.1:8080', gatewayUrl), command].join('\n')
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

/** Pages whose commands run one after the other in one shell, with what they print. */
const ON_THE_DEMO: readonly { readonly page: string; readonly says: readonly RegExp[] }[] = [
  { page: 'README.md', says: [/IP6? /, /"devices":\[/, /"state":"complete"/] },
  {
    page: 'docs/guides/siem.md',
    says: [/ 10\.20\.3\.77\.\d+ > 203\.0\.113\.99\.80: /, /"token":"/, /"state":"(queued|running)"/],
  },
  { page: 'docs/guides/tokens.md', says: [/"token":"/, /"url":"/] },
  { page: 'docs/guides/users.md', says: [/^bob +user/m] },
  { page: 'docs/guides/exports.md', says: [/30 2 \* \* \*/] },
  { page: 'docs/guides/tls.md', says: [] },
]

const CLIENT_PROGRAMS = [
  { language: 'Python', kind: 'python', file: 'minute.py', command: '/usr/bin/python3 minute.py' },
  { language: 'Go', kind: 'go', file: 'minute.go', command: 'go run minute.go' },
] as const

const STARTS = 'starts what runs until Ctrl-C; the tests start the demo in another way'
const OTHER_DEVICE = 'needs a device of the reader'
const ROOT_OF_MACHINE = 'changes the machine; test/systemd.test.ts compares it with the units'
const OWNERS = 'needs the users of an installation; docs/get-started/systemd.md has the same commands'
const PACKAGES = 'changes the machine; test/packages/installation.night.ts does it in an empty Debian'
const CHECKOUT = 'replaces the installation of the machine'
const CLUSTER = 'needs a cluster; test/kubernetes and test/helm install the chart'
const UPLOADS = 'needs a file of the reader; test/e2e/uploads.test.ts does the same'
const REDIS = 'changes the Redis of a gateway'
/** Page -> heading -> why its blocks are not run here. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'README.md': { 'Two commands': STARTS },
  [DEMO]: { 'The demo': STARTS },
  'docs/get-started/systemd.md': { 'Installation with systemd': ROOT_OF_MACHINE },
  'docs/get-started/kubernetes.md': { Kubernetes: CLUSTER },
  'docs/guides/add-a-device.md': {
    "Create the gateway's user on the device": OWNERS,
    'Check it first': OTHER_DEVICE,
    'Add it to the configuration': OTHER_DEVICE,
  },
  'docs/guides/backup.md': { Redis: REDIS },
  'docs/guides/packages.md': {
    Install: PACKAGES,
    'Set up a capture machine': PACKAGES,
    'Set up a gateway': PACKAGES,
    'The client as one executable': 'needs the release; test/packages/packages.test.ts runs it',
    'Upgrade the packages': PACKAGES,
    'Remove the packages': PACKAGES,
    'Purge the packages': PACKAGES,
    'Replace a checkout': CHECKOUT,
  },
  'docs/guides/tls.md': { 'Owner and mode of the key': OWNERS },
  'docs/operations/runbook.md': { Runbook: CLUSTER, 'The disk is full': 'shows the disks of the machine' },
  'docs/reference/captures.md': { Uploads: UPLOADS },
}

/** Blocks of commands without a reason not to run. */
function runnableOf(page: string) {
  return codeBlocksOf(read(page)).filter(
    ({ kind, heading }) => kind === 'sh' && NOT_RUN[page]?.[heading] === undefined,
  )
}

/**
 * "capfleet export create --watch" -> its words and its flags, in blocks of commands and in code within text. A word
 * with a colon, such as "capfleet end:", begins a comment of a file.
 */
function capfleetCommands(
  text: string,
): { readonly words: readonly string[]; readonly flags: readonly string[] }[] {
  const blocks = codeBlocksOf(text)
    .filter(({ kind }) => kind === 'sh')
    .map((block) => block.text.replaceAll('\\\n', ' '))
  const inline = [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
  return [...blocks, ...inline].flatMap((code) =>
    [...code.matchAll(/(?:^|[\s(/])capfleet ([a-z](?![a-z]*:)[^\n|&;)]*)/gm)].map(([, rest = '']) => {
      const tokens = rest.replace(/ #.*/, '').split(/\s+/)
      const first = tokens.findIndex((token) => !/^[a-z][a-z-]*$/.test(token))
      const named = first < 0 ? tokens : tokens.slice(0, first)
      return {
        words: commandWords(named),
        flags: tokens.filter((token) => /^--[a-z]/.test(token)).map((token) => token.replace(/=.*/, '')),
      }
    }),
  )
}

/** The words that are commands; what follows is an argument. */
function commandWords(words: readonly string[]): readonly string[] {
  const groups = new Set([
    'context',
    'export',
    'schedule',
    'token',
    'completion',
    'store',
    'user',
    'device',
    'appliance',
    'audit',
  ])
  const length = words.findIndex((word) => !groups.has(word))
  const ends = length < 0 ? words.length : length + 1
  return words[0] === 'appliance' && words[1] !== 'doctor' ? ['appliance'] : words.slice(0, ends)
}

describe('against the demo', () => {
  const parts = new AsyncDisposableStack()
  let folder: string
  let demo: DemoProcess

  before(async () => {
    folder = parts.use(await tempFolder()).path
    await symlink(join(REPOSITORY_ROOT, 'src'), join(folder, 'src'))
    demo = parts.use(await startDemo(join(folder, '.capfleet')))
  })
  after(() => parts.disposeAsync())

  /** The commands below a heading of the page of common tasks, in the shell that it begins with. */
  async function commands(heading: string, env: Record<string, string> = {}): Promise<string> {
    const range = /^range=.*$/m.exec(read(TASKS))?.[0] ?? ''
    const script = [preamble(demo.facts.gatewayUrl), range, ...blocksBelow(TASKS, heading)].join('\n')
    const { status, stdout, stderr } = await runShell(script, folder, env)
    assert.equal(status, 0, stderr)
    return stdout
  }

  test('the user of a gateway of your own', async () => {
    const home = parts.use(await tempFolder()).path
    const { hostname } = new URL(demo.facts.gatewayUrl)
    const password = (await readFile(join(folder, '.capfleet/demo-password'), 'utf8')).trim()
    const [line = ''] = blocksBelow(TASKS, 'Your own gateway', 'text')
    const typed = line
      .replace('gateway.example.net', hostname)
      .replace('ann', 'demo')
      .replace('SECRET', password)
    const shell = blocksBelow(TASKS, 'Your own gateway')
      .join('\n')
      .replace('https://gateway.example.net', demo.facts.gatewayUrl)
    await writeFile(join(home, 'typed'), typed)
    const { status, stdout, stderr } = await runShell(`exec < typed\n${shell}`, home)
    assert.equal(status, 0, stderr)
    assert.match(stdout, /"name":"lon1"/)
    assert.equal((await stat(join(home, 'netrc'))).mode & 0o077, 0)
  })

  test('a minute from three sites', async () => {
    const lines = (await commands('Download a minute of three sites into one file')).trim().split('\n')
    assert.equal(lines.length, 3)
    for (const line of lines) assert.match(line, /^09:01:59\.\d{6,9} IP/)
  })

  test('filtered and small', async () => {
    const lines = (await commands('Filter, slice and compress')).trim().split('\n')
    const packets = lines.slice(0, 3)
    for (const line of packets) assert.match(line, /\.53: |\.53 >/)
    const estimate = JSON.parse(lines.slice(4).join('\n'))
    assert.ok(Number(estimate.packets) > 10_000, estimate.packets)
    assert.equal(estimate.devices.length, 3)
    const count = JSON.parse(lines[3] ?? '')
    assert.deepEqual([count.exact, count.devices], [true, 3])
    assert.ok(Number(count.packets) > 0 && Number(count.packets) < Number(estimate.packets), count.packets)
  })

  test('where an address was seen', async () => {
    const lines = (await commands('Find where an address was seen'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const [found] = lines.filter(({ address }) => address !== undefined)
    assert.deepEqual([found.device, found.address], ['nyc1', '203.0.113.99'])
    assert.ok(Number(found.packets) > 0)
    assert.deepEqual([lines.at(-1).complete, lines.at(-1).devices], [true, 3])
  })

  test('what there is', async () => {
    const said = await commands('List devices, the queue and captures')
    for (const name of ['nyc1', 'lon1', 'sgp1']) assert.ok(said.includes(name))
    assert.match(said, /"requests":\[/)
    assert.match(said, /"StreamList":true/)
    assert.ok(readPcap(await readFile(join(folder, 'demo.pcap'))).records.length >= 100_000)
  })

  test('live, as the packets come', { skip: WITHOUT_CAPTURE }, async () => {
    const lines = (await commands('Follow packets live')).trim().split('\n')
    assert.equal(lines.filter((line) => / IP6? /.test(line)).length, 20, 'packets')
    for (const line of lines.slice(20)) assert.ok(JSON.parse(line))
    assert.ok(lines.length > 20, 'telemetry')
  })

  test('start and stop a capture', { skip: WITHOUT_CAPTURE }, async () => {
    const said = await commands('Start and stop a capture')
    assert.match(said, /successfully stopped capture/)
    assert.match(said, /successfully started capture \[incident-7\]/)
  })

  test('a day of it, by tomorrow', async () => {
    const said = await commands('Export')
    assert.match(said, /^data: .*"state":"complete"/m)
    const manifest = JSON.parse(said.slice(said.indexOf('{\n')))
    const bytes = await readFile(join(folder, 'export.pcap.zst'))
    assert.equal(hash('sha256', bytes), manifest.files[0].sha256)
    assert.equal(manifest.reason, 'case-7')
  })

  test('less for others', async () => {
    const [device, token, ticket] = (await commands('Give limited access')).split(
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
    const said = await commands('Use the command line', { XDG_CONFIG_HOME: config })
    const [, seenPackets] = /^203\.0\.113\.99 +nyc1 .*Z +(\d+) /m.exec(said) ?? []
    assert.equal(readPcap(await readFile(join(folder, 'seen.pcap'))).records.length, Number(seenPackets))
    const packets = readPcap(await readFile(join(folder, 'dns.pcap'))).records
    assert.ok(packets.length > 100)
    const [exported = ''] = (await readdir(folder)).filter((name) => /^fleet_.*\.zst$/.test(name))
    assert.ok((await stat(join(folder, exported))).size > 1_000_000)
  })

  for (const { page, says } of ON_THE_DEMO)
    test(`all commands of ${page}`, async () => {
      const home = parts.use(await tempFolder()).path
      await symlink(join(folder, '.capfleet'), join(home, '.capfleet'))
      await symlink(join(REPOSITORY_ROOT, 'src'), join(home, 'src'))
      const blocks = runnableOf(page).map(({ text }) =>
        text.replace('http://127.0.0.1:8080', demo.facts.gatewayUrl),
      )
      const login = 'capfleet login "$gw" --user demo --password-file .capfleet/demo-password'
      const script = [preamble(demo.facts.gatewayUrl), login, ...blocks].join('\n')
      const { status, stdout, stderr } = await runShell(script, home, {
        XDG_CONFIG_HOME: join(home, 'config'),
      })
      assert.equal(status, 0, stderr)
      for (const pattern of says) assert.match(stdout, pattern)
    })

  test('the five questions of the demo have the answers that the page prints', async () => {
    const home = parts.use(await tempFolder()).path
    await symlink(join(folder, '.capfleet'), join(home, '.capfleet'))
    const shell = blocksBelow(DEMO, 'Five questions').join('\n')
    for (const { question } of TOUR_QUESTIONS) {
      const commands = [
        shell.replace('http://127.0.0.1:8080', demo.facts.gatewayUrl),
        ...blocksBelow(DEMO, question),
      ]
      const { status, stdout, stderr } = await runShell(commands.join('\n'), home)
      assert.equal(status, 0, stderr)
      assert.equal(stdout, blocksBelow(DEMO, question, 'text').join('\n'), question)
    }
  })

  for (const { language, kind, file, command } of CLIENT_PROGRAMS)
    test(`the program in ${language} downloads a minute`, async () => {
      const home = parts.use(await tempFolder()).path
      const [program = ''] = blocksBelow(CLIENTS, language, kind)
      await writeFile(join(home, file), program)
      await symlink(join(folder, '.capfleet'), join(home, '.capfleet'))
      await symlink(join(REPOSITORY_ROOT, 'src'), join(home, 'src'))
      const [printed = ''] = blocksBelow(CLIENTS, 'Python, PowerShell and Go')
      const shell = printed
        .replaceAll('https://gateway.example.net', demo.facts.gatewayUrl)
        .replace('--user ann', '--user demo --password-file .capfleet/demo-password')
        .replace('python3 minute.py', command)
      const env = { GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod', XDG_CONFIG_HOME: join(home, 'config') }
      const { status, stdout, stderr } = await runShell(
        `${preamble(demo.facts.gatewayUrl)}\n${shell}`,
        home,
        env,
      )
      assert.equal(status, 0, stderr)
      assert.match(stdout, /^[0-9a-f-]{36}$/m)
      assert.ok(readPcap(await readFile(join(home, 'out.pcap'))).records.length > 100)
    })

  test('the example in Python: a minute is downloaded, and its talkers are summed', async () => {
    const examplesFolder = parts.use(await tempFolder()).path
    const env = { ...process.env, CAPFLEET_TOKEN: demo.facts.token }
    const python = (name: string, args: readonly string[]) =>
      execute('/usr/bin/python3', [join(EXAMPLES, 'python', name), ...args], { cwd: examplesFolder, env })
    const range = [
      'out.pcap',
      '--begin=2026-11-02T09:01:00Z',
      '--end=2026-11-02T09:02:00Z',
      '--devices',
      'nyc1',
      '--bpf',
      'tcp',
    ]
    const { stdout } = await python('minute.py', [demo.facts.gatewayUrl, ...range])
    const { records } = readPcap(await readFile(join(examplesFolder, 'out.pcap')))
    assert.equal(stdout, `complete: ${records.length} packets\n`)
    assert.ok(records.length > 1_000)
    const lines = (await python('talkers.py', ['out.pcap'])).stdout.trim().split('\n')
    assert.equal(lines.length, 10)
    for (const line of lines) assert.match(line, /^ *\d+ [\d.]+ [\d.]+$/)
    await assert.rejects(
      python('minute.py', [
        demo.facts.gatewayUrl,
        'no.pcap',
        '--begin=-1m',
        '--end=now',
        '--bpf',
        'nonsense(',
      ]),
      /bad-bpf/,
    )
  })

  test('the example of a SOAR: a step leaves the packets and their receipt, and names both with a link', async () => {
    const examplesFolder = parts.use(await tempFolder()).path
    const env = { ...process.env, CAPFLEET_URL: demo.facts.gatewayUrl, CAPFLEET_TOKEN: demo.facts.token }
    const script = join(EXAMPLES, 'soar', 'fetch-packets.sh')
    const { stdout } = await execute('bash', [script, '2026-11-02T09:01:30Z', '203.0.113.10', 'case-7'], {
      cwd: examplesFolder,
      env,
    })
    const { file, receipt, link } = JSON.parse(stdout) as Readonly<Record<string, string>>
    const { records } = readPcap(await readFile(join(examplesFolder, file ?? '')))
    const read = JSON.parse(await readFile(join(examplesFolder, receipt ?? ''), 'utf8')) as Readonly<
      Record<string, unknown>
    >
    assert.deepEqual([read.status, read.packets], ['complete', String(records.length)])
    assert.ok(records.length > 10)
    const { view, values } = parsePageState(new URL(link ?? '').hash)
    assert.deepEqual([view, values.FilterBPF], ['timeline', 'host 203.0.113.10'])
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
  const shell = preamble(gateway.url).replace('--netrc-file .capfleet/netrc', '-H "$AUTH"')
  const lines = blocksBelow(TASKS, 'Resume a download')
    .join('\n')
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

  const start = async (command: string, cwd: string): Promise<string> =>
    parts.use(await startReady(command, cwd)).address

  test('works as printed', async () => {
    const folder = parts.use(await tempFolder()).path
    const lines = blocksBelow(FLEET, 'Start the programs')
      .join('\n')
      .replaceAll('src/capfleet', join(REPOSITORY_ROOT, 'src/capfleet'))
      .split('\n')
      .map((line) => line.replace(/ +#.*$/, ''))
    const line = (word: string): string => {
      const found = lines.find((one) => one.includes(word))
      assert.ok(found !== undefined, word)
      return found.replace(/ &$/, '')
    }
    const anyPort = (yaml: string) => yaml.replace(/port: \d+/, 'port: 0')
    const made = await runShell(line('mkdir'), folder)
    assert.equal(made.status, 0, made.stderr)
    // The second block names an interface that this machine may not have.
    const [storeYaml = ''] = blocksBelow(FLEET, 'Configure an appliance', 'yaml')
    await writeFile(join(folder, 'appliance.yaml'), anyPort(storeYaml))
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
    const gatewayYaml = anyPort(blocksBelow(FLEET, 'Configure the gateway', 'yaml').join(''))
    const anyWorkerPort = 'exports: { worker: { listen: { port: 0 } } }\n'
    const ownDevice = gatewayYaml.replace('http://127.0.0.1:8081', device)
    await writeFile(join(folder, 'gateway.yaml'), ownDevice + anyWorkerPort)
    // At the same time, as the shell starts them.
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
    const [looks = ''] = blocksBelow(FLEET, 'See that it works')
    const asked = looks
      .replaceAll('src/capfleet', join(REPOSITORY_ROOT, 'src/capfleet'))
      .replace('http://127.0.0.1:8080', gateway)
      .replace(/(--user ann).*/, '$1 --password-file lon1-password')
    const { status, stdout, stderr } = await runShell(asked, folder, { XDG_CONFIG_HOME: folder })
    assert.equal(status, 0, stderr)
    assert.match(stdout, /^lon1 +eu +yes /m)
    assert.match(stdout, /^lon1 +a /m)
  })
})

/** The help of a command that asks a gateway; undefined for others, which are only known to the whole program. */
function clientHelp(client: Command, words: readonly string[]): string | undefined {
  const find = (within: Command | undefined, word: string) =>
    within?.commands.find((command) => command.name() === word)
  return words.reduce(find, client as Command | undefined)?.helpInformation()
}

async function printedHelp(words: readonly string[]): Promise<string> {
  return (await runShell(`src/capfleet ${words.join(' ')} --help`, REPOSITORY_ROOT)).stdout
}

describe('every block is run, or has a reason', () => {
  const pages = [
    'README.md',
    ...readdirSync(join(REPOSITORY_ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.md'))
      .map((path) => `docs/${path}`),
  ]

  test('a page with commands is run as a whole, or its blocks have reasons', () => {
    const known = new Set([TASKS, FLEET, DEMO, CLIENTS, ...ON_THE_DEMO.map(({ page }) => page)])
    const forgotten = pages
      .filter((page) => !known.has(page))
      .flatMap((page) => runnableOf(page).map(({ heading }) => `${page}: ${heading}`))
    assert.deepEqual(forgotten, [])
  })

  test('each reason is still needed', () => {
    const unused = Object.entries(NOT_RUN).flatMap(([page, headings]) =>
      Object.keys(headings)
        .filter(
          (heading) =>
            !codeBlocksOf(read(page)).some((block) => block.heading === heading && block.kind === 'sh'),
        )
        .map((heading) => `${page}: ${heading}`),
    )
    assert.deepEqual(unused, [])
  })

  test('each command of capfleet that a page names exists, with its flags', async () => {
    const named = pages.flatMap((page) =>
      capfleetCommands(read(page)).map((command) => ({ page, ...command })),
    )
    assert.ok(named.length > 40, `${named.length}`)
    const client = createProgram('')
    await addClientCommands(client, Object.keys(CLIENT_COMMANDS))
    const helps = new Map<string, string>()
    const wrong: string[] = []
    for (const { page, words, flags } of named) {
      const key = words.join(' ')
      const help = helps.get(key) ?? clientHelp(client, words) ?? (await printedHelp(words))
      helps.set(key, help)
      const asked = new RegExp(`^Usage: capfleet ${key}\\b`, 'm')
      if (!asked.test(help)) wrong.push(`${page}: capfleet ${key}`)
      for (const flag of flags)
        if (!new RegExp(`${flag}\\b`).test(help)) wrong.push(`${page}: ${key} ${flag}`)
    }
    assert.deepEqual(wrong, [])
  })
})

/** As in the users file; a page cannot have the whole hash of a password. */
const USERS = z.strictObject({
  users: z.array(boundsSchema.extend({ name: z.string(), role: z.enum(ROLES), password: z.string() })),
})
const DEVICE = { name: 'lon1', url: 'http://192.0.2.1', user: 'ann', password: { file: 'lon1-password' } }
const PROGRAMS = [
  { schema: gatewayConfigSchema, required: { auth: { users: 'users.yaml' }, devices: [DEVICE] } },
  { schema: applianceConfigSchema, required: { store: 'store', auth: { users: 'users.yaml' } } },
  { schema: USERS, required: {} },
] as const

/** Without the lines of the page, a program would not start with it. */
function isConfiguration(text: string): boolean {
  const value = parse(text) as Record<string, unknown>
  const ofProgram = PROGRAMS.some(
    ({ schema, required }) => schema.safeParse({ ...required, ...value }).success,
  )
  return ofProgram || isPartOf(value, parse(read('helm/values.yaml')))
}

/** Whether each key is one of the chart's values; what an empty value may hold is not known here. */
function isPartOf(value: unknown, whole: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true
  if (typeof whole !== 'object' || whole === null) return false
  return Object.entries(value).every(
    ([key, inner]) =>
      Object.keys(whole).length === 0 || (key in whole && isPartOf(inner, whole[key as never])),
  )
}

test('each configuration in a page is one that a program, or the chart, takes', () => {
  const blocks = readdirSync(join(REPOSITORY_ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && path !== 'reference/settings.md')
    .flatMap((path) => codeBlocksOf(read(`docs/${path}`)).map((block) => ({ path, ...block })))
    .filter(({ kind }) => kind === 'yaml')
  assert.ok(blocks.length >= 8)
  for (const { path, heading, text } of blocks) assert.ok(isConfiguration(text), `${path}: ${heading}`)
  assert.ok(!isConfiguration('listen: { prot: 1 }'))
})
