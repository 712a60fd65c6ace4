/** Runs in the network namespace of capture.bench.ts. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { makeVethPair, type VethPair } from '../../support/network/network-namespace.ts'
import { sendPackets } from '../../support/packets/packet-sender.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { writeImixTraffic } from '../inputs/imix-traffic.ts'
import { printCells } from '../report/print-cells.ts'

interface Capturer {
  readonly label: string
  readonly command: string
  /** Can capture from several interfaces; for a tool that cannot, there is one process per interface. */
  readonly takesAll: boolean
  readonly args: (interfaceNames: readonly string[], folder: string) => readonly string[]
}

interface Load {
  readonly ports: number
  /** The rate at each port; 0 = as many as the sender can send. */
  readonly packetsPerSecond: number
  /** Busy processes on the capturer's core. */
  readonly hogs: number
}

const RECORDER = fileURLToPath(new URL('capture-recorder.ts', import.meta.url))
const CAPTURERS: readonly Capturer[] = [
  {
    label: 'capfleet',
    command: process.execPath,
    takesAll: true,
    args: (names, folder) => [RECORDER, folder, ...names],
  },
  {
    label: 'tcpdump -B 128 MiB',
    command: 'tcpdump',
    takesAll: false,
    args: (names, folder) => [...tcpdumpWords(names, folder), '-B', '131072', '-s', '0', '--nano'],
  },
  { label: 'tcpdump', command: 'tcpdump', takesAll: false, args: tcpdumpWords },
  {
    label: 'dumpcap -B 128 MiB',
    command: 'dumpcap',
    takesAll: true,
    // From several interfaces it can write only PCAPNG.
    args: (names, folder) => [
      ...names.flatMap((name) => ['-i', name, '-B', '128']),
      ...(names.length === 1 ? ['-P'] : []),
      '-w',
      fileOf(names, folder),
    ],
  },
  {
    label: 'netsniff-ng 128 MiB',
    command: 'netsniff-ng',
    takesAll: false,
    args: (names, folder) => [
      ...['-i', names.join(), '-o', fileOf(names, folder)],
      ...['-s', '-S', '128MiB', '-T', '0xa1b23c4d'],
    ],
  },
]
const LOADS: readonly Load[] = [
  { ports: 1, packetsPerSecond: 100_000, hogs: 0 },
  { ports: 1, packetsPerSecond: 250_000, hogs: 0 },
  { ports: 1, packetsPerSecond: 0, hogs: 0 },
  { ports: 1, packetsPerSecond: 0, hogs: 4 },
  { ports: 1, packetsPerSecond: 0, hogs: 12 },
  { ports: 1, packetsPerSecond: 0, hogs: 24 },
  { ports: 3, packetsPerSecond: 0, hogs: 0 },
  { ports: 3, packetsPerSecond: 0, hogs: 24 },
]
const WIDTHS = [5, 9, 5, 20, 9, 9, 9, 7, 11]
const MOST_PORTS = 3
/** Types of PCAPNG's blocks. */
const PCAPNG_SECTION = 0x0a0d0d0a
const PCAPNG_PACKET = 6
const INPUT_BYTES = 64 * 2 ** 20
const ROUNDS = Number(process.argv[2])
const SENDER_CORE = '0'
const CAPTURE_CORE = '1'

await using root = await tempFolder()
const traffic = join(root.path, 'sent.pcap')
await writeImixTraffic([traffic], { seed: 1, startNs: 0n, bytes: INPUT_BYTES })
// IMIX fits into an Ethernet MTU; tags are added to that.
const pairs: VethPair[] = []
for (let port = 0; port < MOST_PORTS; port++) pairs.push(await makeVethPair(2_000))
spawnSync('taskset', ['-pc', SENDER_CORE, String(process.pid)])
printCells(['ports', 'rate', 'hogs', 'capturer', 'offered', 'stored', 'dropped', '%', 'CPU s/Mpkt'], WIDTHS)
for (const load of LOADS) {
  for (const capturer of CAPTURERS) {
    if (spawnSync('which', [capturer.command]).status === 0) await contest(load, capturer)
  }
}

function tcpdumpWords(names: readonly string[], folder: string): readonly string[] {
  return ['-i', names.join(), '-w', fileOf(names, folder), '-Z', 'root']
}

function fileOf(names: readonly string[], folder: string): string {
  return join(folder, `${names.join('-')}.pcap`)
}

async function contest({ ports, packetsPerSecond, hogs }: Load, capturer: Capturer): Promise<void> {
  await using folder = await tempFolder()
  const work = join(folder.path, 'c')
  await mkdir(work)
  const wires = pairs.slice(0, ports)
  const interfaces = wires.map(({ far }) => far)
  const groups = capturer.takesAll ? [interfaces] : interfaces.map((name) => [name])
  const children = groups.map((names) =>
    spawn('taskset', ['-c', CAPTURE_CORE, capturer.command, ...capturer.args(names, work)], {
      stdio: ['pipe', 'ignore', 'pipe'],
    }),
  )
  await Promise.all(children.map((child) => settled(child, work)))
  const busy = Array.from({ length: hogs }, () =>
    spawn('taskset', ['-c', CAPTURE_CORE, 'sh', '-c', 'while :; do :; done'], { stdio: 'ignore' }),
  )
  const before = await cpuSecondsOfAll(children)
  const sent = wires.map(({ near, far }) =>
    sendPackets(near, traffic, { rounds: ROUNDS, packetsPerSecond, receiver: far }),
  )
  const offered = (await Promise.all(sent)).reduce((sum, packets) => sum + Number(packets), 0)
  for (const hog of busy) hog.kill()
  // All tools flush what they have within a second.
  await delay(1500)
  const cpu = (await cpuSecondsOfAll(children)) - before
  const ended = children.map((child) => once(child, 'exit'))
  for (const child of children) {
    if (capturer.label === 'capfleet') child.stdin?.end()
    else child.kill('SIGINT')
  }
  await Promise.all(ended)
  const stored = await countStored(work)
  printCells(
    [
      String(ports),
      packetsPerSecond === 0 ? 'max' : packetsPerSecond.toLocaleString('en'),
      String(hogs),
      capturer.label,
      String(offered),
      String(stored),
      String(offered - stored),
      ((100 * (offered - stored)) / offered).toFixed(2),
      ((cpu * 1e6) / offered).toFixed(2),
    ],
    WIDTHS,
  )
}

/** Until the capturer reports that it listens, or has its file; and a little longer, for those that report early. */
async function settled(child: ChildProcess, folder: string): Promise<void> {
  const told = child.stderr ? once(child.stderr, 'data') : undefined
  const made = (async () => {
    while ((await readdir(folder)).length === 0) await delay(20)
  })()
  await Promise.race([told, made])
  child.stderr?.resume()
  await delay(500)
}

async function cpuSecondsOfAll(children: readonly ChildProcess[]): Promise<number> {
  const each = await Promise.all(children.map(({ pid }) => cpuSeconds(pid)))
  return each.reduce((sum, seconds) => sum + seconds, 0)
}

async function cpuSeconds(pid: number | undefined): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Records in all files, wherever they are. */
async function countStored(folder: string): Promise<number> {
  let count = 0
  for (const name of await readdir(folder, { recursive: true })) {
    const path = join(folder, name)
    if (!name.endsWith('.pcap') || !(await stat(path)).isFile()) continue
    count += countRecords(await readFile(path))
  }
  return count
}

function countRecords(bytes: Buffer): number {
  let count = 0
  if (bytes.length >= 4 && bytes.readUInt32LE(0) === PCAPNG_SECTION) {
    for (let at = 0; at + 12 <= bytes.length; at += bytes.readUInt32LE(at + 4)) {
      if (bytes.readUInt32LE(at) === PCAPNG_PACKET) count++
    }
    return count
  }
  for (let at = 24; at + 16 <= bytes.length; count++) at += 16 + bytes.readUInt32LE(at + 8)
  return count
}
