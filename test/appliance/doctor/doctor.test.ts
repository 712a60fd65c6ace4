// The doctor on real interfaces, stores and processes, and on made-up machines.

import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type ApplianceConfig, applianceConfigSchema } from '../../../appliance/appliance-config.ts'
import { checkClock } from '../../../appliance/doctor/clock-checks.ts'
import { examine } from '../../../appliance/doctor/doctor.ts'
import type { Finding } from '../../../appliance/doctor/finding.ts'
import { checkKernel } from '../../../appliance/doctor/kernel-checks.ts'
import { checkPort } from '../../../appliance/doctor/port-checks.ts'
import { checkPrivileges } from '../../../appliance/doctor/privilege-checks.ts'
import { checkRecorder } from '../../../appliance/doctor/recorder-checks.ts'
import { checkStore } from '../../../appliance/doctor/store-checks.ts'
import { MACHINE_ROOTS } from '../../../appliance/machine/kernel-files.ts'
import { formatFindings } from '../../../src/operator/appliance-doctor.ts'
import { makeVethPair, WITHOUT_VETH } from '../../support/network/veth-pair.ts'
import { startTempAppliance } from '../../support/processes/temp-appliance.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const CLI = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url))
const signal = AbortSignal.timeout(60_000)

type Settings = Readonly<Record<string, unknown>>
const configOf = (store: string, capture: Settings = {}): ApplianceConfig =>
  applianceConfigSchema.parse({ store, auth: { users: 'users.yaml' }, capture })

function find(findings: readonly Finding[], check: string, subject = ''): Finding {
  const found = findings.filter((entry) => entry.check === check && entry.subject.startsWith(subject))
  assert.equal(found.length, 1, `${subject} ${check}: ${JSON.stringify(findings)}`)
  return found[0] as Finding
}

async function makeFiles(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true })
    await writeFile(join(root, name), text)
  }
}

describe('ports', { skip: WITHOUT_VETH }, () => {
  const examinePort = (name: string, threads = 1): Promise<readonly Finding[]> => {
    const [port] = configOf('/x', { ports: [{ port: 2, interface: name, threads }] }).capture.ports
    assert.ok(port)
    return checkPort(port, MACHINE_ROOTS, signal)
  }
  const ethtool = (...args: readonly string[]): void => void execFileSync('ethtool', args)

  test('an interface that is fine, and each offload that is not', async () => {
    using pair = makeVethPair()
    for (const option of ['gro', 'gso', 'tso']) ethtool('-K', pair.left, option, 'off')
    const well = await examinePort(pair.left)
    assert.equal(find(well, 'interface').subject, `cap2 (${pair.left})`)
    assert.match(find(well, 'interface').detail, /^up, /)
    assert.deepEqual(
      well.filter(({ level }) => level === 'problem'),
      [],
    )
    ethtool('-K', pair.left, 'gro', 'on')
    const merged = find(await examinePort(pair.left), 'gro')
    assert.deepEqual([merged.level, merged.fix], ['problem', `ethtool -K ${pair.left} gro off`])
    // The advice in the finding solves the problem.
    const [program = '', ...args] = merged.fix.split(' ')
    execFileSync(program, args)
    assert.equal(find(await examinePort(pair.left), 'gro').level, 'ok')
    ethtool('-K', pair.left, 'tso', 'on')
    assert.equal(find(await examinePort(pair.left), 'tso').level, 'warning')
  })

  test('an interface that is off, without link, or not there', async () => {
    using pair = makeVethPair()
    execFileSync('ip', ['link', 'set', pair.right, 'down'])
    assert.match(find(await examinePort(pair.left), 'interface').detail, /no link/)
    execFileSync('ip', ['link', 'set', pair.left, 'down'])
    const off = find(await examinePort(pair.left), 'interface')
    assert.deepEqual([off.level, off.fix], ['problem', `ip link set ${pair.left} up`])
    assert.match(find(await examinePort('nosuch0'), 'interface').detail, /no interface nosuch0/)
  })

  test('more threads than queues', async () => {
    using pair = makeVethPair()
    const found = find(await examinePort(pair.left, 4), 'queues')
    assert.equal(found.level, 'warning')
    assert.match(found.detail, /for 4 threads/)
  })
})

describe('the store', () => {
  const options = { isCapturing: false, portBytesPerSecond: 0 }

  test('is measured, and nothing of that stays', async () => {
    await using folder = await tempFolder()
    const findings = await checkStore({ ...options, store: folder.path })
    assert.match(find(findings, 'speed').detail, /^\d+ MiB\/s written and synced, the longest sync \d+ ms$/)
    assert.match(find(findings, 'space').detail, /GiB free$/)
    assert.deepEqual(await readdir(folder.path), [])
  })

  test('that is slower than the ports is a warning; while a capture runs it is left alone', async () => {
    await using folder = await tempFolder()
    const slow = await checkStore({ ...options, store: folder.path, portBytesPerSecond: 1e15 })
    assert.equal(find(slow, 'speed').level, 'warning')
    const busy = await checkStore({ ...options, store: folder.path, isCapturing: true })
    assert.match(find(busy, 'speed').detail, /not measured: a capture is running/)
  })

  test('that is not there yet, and one in memory', async () => {
    await using folder = await tempFolder()
    const later = await checkStore({ ...options, store: join(folder.path, 'a/b') })
    assert.match(find(later, 'folder').detail, /the recorder creates it$/)
    const memory = await checkStore({ ...options, store: '/dev/shm' })
    assert.match(find(memory, 'file system').detail, /tmpfs: it is in memory/)
    const file = join(folder.path, 'file')
    await writeFile(file, '')
    assert.equal(find(await checkStore({ ...options, store: join(file, 'x') }), 'folder').level, 'problem')
  })
})

describe('a machine that is made up', () => {
  test('kernel: settings and memory', async () => {
    await using folder = await tempFolder()
    const ports = [{ port: 0, interface: 'x0', threads: 4 }]
    const { capture } = configOf('/x', { ports })
    await makeFiles(folder.path, {
      'sys/net/core/netdev_max_backlog': '1000\n',
      'sys/net/core/netdev_budget': '600\n',
      meminfo: 'MemTotal: 9999999 kB\nMemAvailable:    1048576 kB\n',
      'self/limits':
        'Limit  Soft Limit  Hard Limit\nMax locked memory         8388608              8388608\n',
    })
    const findings = await checkKernel(capture, folder.path, signal)
    assert.match(
      find(findings, 'net.core.netdev_max_backlog').fix,
      /^sysctl -w net.core.netdev_max_backlog=10000/,
    )
    assert.equal(find(findings, 'net.core.netdev_budget').level, 'ok')
    const { level, detail } = find(findings, 'memory')
    assert.deepEqual([level, /takes (\d+) MiB/.exec(detail)?.[1]], ['ok', String(4 * 128 + 256)])
    await makeFiles(folder.path, { meminfo: 'MemAvailable: 500000 kB\n' })
    assert.equal(find(await checkKernel(capture, folder.path, signal), 'memory').level, 'problem')
    assert.match(find(findings, 'RLIMIT_MEMLOCK').detail, /^8388608;/)
  })

  test('clock: a slow source is named with the quick one', async () => {
    await using folder = await tempFolder()
    const clock = 'devices/system/clocksource/clocksource0'
    await makeFiles(folder.path, {
      [`${clock}/current_clocksource`]: 'hpet\n',
      [`${clock}/available_clocksource`]: 'hpet tsc acpi_pm\n',
    })
    const source = find(await checkClock(folder.path, signal), 'source')
    assert.equal(source.level, 'warning')
    assert.match(source.fix, /^echo tsc > .*current_clocksource$/)
    await makeFiles(folder.path, { [`${clock}/current_clocksource`]: 'tsc\n' })
    assert.equal(find(await checkClock(folder.path, signal), 'source').level, 'ok')
  })

  test('privileges: those of the running recorder, not of the caller', async () => {
    await using folder = await tempFolder()
    await makeFiles(folder.path, {
      'self/status': 'Name:\tnode\nCapEff:\t000001ffffffffff\n',
      '17/status': 'Name:\tnode\nCapEff:\t0000000000000000\n',
      '18/status': 'Name:\tnode\nCapEff:\t0000000000002000\n',
    })
    const levelFor = async (recorderPid: number | undefined): Promise<string> => {
      const options = { proc: folder.path, recorderPid, execPath: '/nowhere' }
      return find(await checkPrivileges(options, signal), 'CAP_NET_RAW').level
    }
    assert.deepEqual(
      [await levelFor(undefined), await levelFor(17), await levelFor(18)],
      ['ok', 'problem', 'ok'],
    )
  })
})

test('a recorder that runs is asked; drops are a problem with their cause', async () => {
  await using appliance = await startTempAppliance()
  const findings = await examine(configOf(appliance.storePath))
  assert.deepEqual(find(findings, 'running').level, 'ok')
  assert.equal(find(findings, 'configured').level, 'warning')
  const report = await appliance.recorder.captureReport()
  const counts = { ...report.counts, drops: 9n, ringDrops: 2n, diskDrops: 7n }
  const drops = find(checkRecorder({ ...report, counts }), 'drops')
  assert.equal(drops.level, 'problem')
  assert.match(drops.fix, /faster disk/)
  await appliance.stopRecorder()
  assert.equal(find(await examine(configOf(appliance.storePath)), 'running').level, 'warning')
})

describe('the command', () => {
  const run = (...args: readonly string[]): Promise<{ status: number; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      execFile(process.execPath, [CLI, ...args], (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr }),
      )
    })

  test('prints a table or JSON, and its status says whether there is a problem', async () => {
    await using folder = await tempFolder()
    const config = join(folder.path, 'appliance.yaml')
    await writeFile(config, 'store: ./store\nauth: {users: ./users.yaml}\n')
    const well = await run('appliance', 'doctor', '--config', config)
    assert.equal(well.status, 0, well.stdout)
    assert.match(well.stdout, /^warning {2}recorder +running +no recorder runs.*\n +-> capfleet recorder/m)
    assert.match(well.stdout, /\n0 problems, \d+ warnings?\n$/)
    const ports = 'capture: {ports: [{port: 0, interface: nosuch0}]}\n'
    await writeFile(config, `store: ./store\nauth: {users: ./users.yaml}\n${ports}`)
    const ill = await run('appliance', '--config', config, 'doctor', '--json')
    assert.equal(ill.status, 1)
    const { findings } = JSON.parse(ill.stdout) as { findings: Finding[] }
    assert.equal(find(findings, 'interface').level, 'problem')
    await writeFile(config, 'store: ./store\n')
    const bad = await run('appliance', 'doctor', '--config', config)
    assert.deepEqual([bad.status, bad.stdout], [1, ''])
    assert.match(bad.stderr, /\[bad-config\]\n$/)
  })

  test('lines up its columns', () => {
    const text = formatFindings([
      { subject: 'a', check: 'bb', level: 'ok', detail: 'fine', fix: '' },
      { subject: 'aaa', check: 'b', level: 'problem', detail: 'bad', fix: 'mend' },
    ])
    assert.equal(
      text,
      'ok       a    bb  fine\nproblem  aaa  b   bad\n                  -> mend\n\n1 problem, 0 warnings',
    )
  })
})
