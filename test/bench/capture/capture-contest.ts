/** Runs in the namespace of capture.bench.ts. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { makeVethPair } from '../../support/live/network-namespace.ts'
import { sendPackets } from '../../support/packets/packet-sender.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { writeImixTraffic } from '../inputs/imix-traffic.ts'
import { printCells } from '../report/print-cells.ts'

interface Capturer {
  readonly label: string
  readonly command: string
  readonly args: (interfaceName: string, folder: string) => readonly string[]
}

interface Load {
  readonly packetsPerSecond: number
  /** Busy processes on the capturer's core. */
  readonly hogs: number
}

const RECORDER = fileURLToPath(new URL('capture-recorder.ts', import.meta.url))
const CAPTURERS: readonly Capturer[] = [
  { label: 'capfleet', command: process.execPath, args: (name, folder) => [RECORDER, name, folder] },
  {
    label: 'tcpdump -B 128 MiB',
    command: 'tcpdump',
    args: (name, folder) => [
      '-i',
      name,
      '-w',
      join(folder, 'a.pcap'),
      '-B',
      '131072',
      '-s',
      '0',
      '--nano',
      '-Z',
      'root',
    ],
  },
  {
    label: 'tcpdump',
    command: 'tcpdump',
    args: (name, folder) => ['-i', name, '-w', join(folder, 'a.pcap'), '-Z', 'root'],
  },
  {
    label: 'dumpcap -B 128 MiB',
    command: 'dumpcap',
    args: (name, folder) => ['-i', name, '-P', '-B', '128', '-w', join(folder, 'a.pcap')],
  },
  {
    label: 'netsniff-ng 128 MiB',
    command: 'netsniff-ng',
    args: (name, folder) => [
      '-i',
      name,
      '-o',
      join(folder, 'a.pcap'),
      '-s',
      '-S',
      '128MiB',
      '-T',
      '0xa1b23c4d',
    ],
  },
]
const LOADS: readonly Load[] = [
  { packetsPerSecond: 100_000, hogs: 0 },
  { packetsPerSecond: 250_000, hogs: 0 },
  { packetsPerSecond: 0, hogs: 0 },
  { packetsPerSecond: 0, hogs: 4 },
  { packetsPerSecond: 0, hogs: 12 },
  { packetsPerSecond: 0, hogs: 24 },
]
const WIDTHS = [9, 5, 20, 9, 9, 9, 7, 11]
const INPUT_BYTES = 64 * 2 ** 20
const ROUNDS = Number(process.argv[2])
const SENDER_CORE = '0'
const CAPTURE_CORE = '1'

await using root = await tempFolder()
const traffic = join(root.path, 'sent.pcap')
await writeImixTraffic([traffic], { seed: 1, startNs: 0n, bytes: INPUT_BYTES })
// IMIX is within an Ethernet MTU; tags are on top of that.
const { near, far } = await makeVethPair(2_000)
spawnSync('taskset', ['-pc', SENDER_CORE, String(process.pid)])
printCells(['rate', 'hogs', 'capturer', 'offered', 'stored', 'dropped', '%', 'CPU s/Mpkt'], WIDTHS)
for (const load of LOADS) {
  for (const capturer of CAPTURERS) {
    if (spawnSync('which', [capturer.command]).status === 0) await contest(load, capturer)
  }
}

async function contest({ packetsPerSecond, hogs }: Load, capturer: Capturer): Promise<void> {
  await using folder = await tempFolder()
  const work = join(folder.path, 'c')
  await mkdir(work)
  const child = spawn('taskset', ['-c', CAPTURE_CORE, capturer.command, ...capturer.args(far, work)], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  await settled(child, work)
  const busy = Array.from({ length: hogs }, () =>
    spawn('taskset', ['-c', CAPTURE_CORE, 'sh', '-c', 'while :; do :; done'], { stdio: 'ignore' }),
  )
  const before = await cpuSeconds(child.pid)
  const offered = Number(
    await sendPackets(near, traffic, { rounds: ROUNDS, packetsPerSecond, receiver: far }),
  )
  for (const hog of busy) hog.kill()
  // All tools hand over what they have within a second.
  await delay(1500)
  const cpu = (await cpuSeconds(child.pid)) - before
  const ended = once(child, 'exit')
  if (capturer.label === 'capfleet') child.stdin?.end()
  else child.kill('SIGINT')
  await ended
  const stored = await countStored(work)
  printCells(
    [
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

/** Until the capturer says that it listens, or has its file; and a little more, for those that say it early. */
async function settled(child: ChildProcess, folder: string): Promise<void> {
  const told = child.stderr ? once(child.stderr, 'data') : undefined
  const made = (async () => {
    while ((await readdir(folder)).length === 0) await delay(20)
  })()
  await Promise.race([told, made])
  child.stderr?.resume()
  await delay(500)
}

async function cpuSeconds(pid: number | undefined): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Records in all files of PCAP, wherever they are. */
async function countStored(folder: string): Promise<number> {
  let count = 0
  for (const name of await readdir(folder, { recursive: true })) {
    const path = join(folder, name)
    if (!name.endsWith('.pcap') || !(await stat(path)).isFile()) continue
    const bytes = await readFile(path)
    for (let at = 24; at + 16 <= bytes.length; count++) at += 16 + bytes.readUInt32LE(at + 8)
  }
  return count
}
