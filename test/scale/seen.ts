/**
 * `npm run seen -- [--segments 100000] [--folder /var/tmp]` measures a search for addresses in a store of many small
 * segments (twenty packets each, up to forty of 50,000 hosts in each): one address warm and, as root, cold, 10,000
 * addresses, a filtered download of the whole store, each with tables of addresses and without, and tcpdump over the same
 * packets. Appliance and recorder are in this process. Prints a line for each figure. Needs some 3 GB in the folder and
 * in /dev/shm.
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runProgram } from '../../src/shared/base/program.ts'
import { makePcap, makeRecord } from '../support/packets/packet-maker.ts'
import { readPcap } from '../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'
import { seededRandom } from '../support/seeded-random.ts'

const { values } = parseArgs({
  options: {
    segments: { type: 'string', default: '100000' },
    folder: { type: 'string', default: '/var/tmp' },
  },
})

const BEGIN_NS = 1_700_000_000_000_000_000n
const PACKETS_PER_SEGMENT = 20
const PACKET_BYTES = 500
const RECORD_BYTES = 16 + PACKET_BYTES
const HOSTS = 50_000
/** Asked for in turn, so that no question was asked just before. */
const QUESTIONS = 200
const COLD_QUESTIONS = 20
const LIST = 10_000
const KEEPS_ALL = { maxBytes: 0, minFreeBytes: 0, maxAgeMs: 0, onFull: 'roll', pinMs: 0 } as const
const RANGE = { TSBegin: '0', TSEnd: '4294967296', TSUnit: 'sec' }

await runProgram(async () => {
  const home = await mkdtemp(join(values.folder, 'capfleet-seen-'))
  try {
    await run(Number(values.segments), home)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
})

async function run(segments: number, home: string): Promise<void> {
  const file = join(home, 'packets.pcap')
  const storePath = join(home, 'store')
  const packetsOfHost = await writePackets(file, segments * PACKETS_PER_SEGMENT)
  await makeStore(file, storePath)
  await using appliance = await startTempAppliance({ storePath, retention: KEEPS_ALL })
  const port = join(storePath, 'captures', 'scale', 'cap0')
  const tables = (await readdir(port)).filter((name) => name.endsWith('.addresses'))
  say('tables', { tables: tables.length, segments, MiB: Math.round((await stat(file)).size / 2 ** 20) })
  await measure(appliance, 'with tables', packetsOfHost)
  for (const name of tables) await rm(join(port, name))
  await measure(appliance, 'with sieves only', packetsOfHost)
  const beganMs = performance.now()
  const counted = execFileSync('sh', ['-c', `tcpdump -nr ${file} host ${hostOf(1)} 2>/dev/null | wc -l`])
  const isRight = Number(counted) === (packetsOfHost.get(hostOf(1)) ?? 0)
  say('tcpdump, one address', { seconds: seconds(beganMs), right: isRight })
}

/** In memory first: an import waits for the disk with each of its files. */
async function makeStore(file: string, storePath: string): Promise<void> {
  const segmentBytes = 24 + PACKETS_PER_SEGMENT * RECORD_BYTES
  const made = await mkdtemp('/dev/shm/capfleet-seen-')
  try {
    {
      await using appliance = await startTempAppliance({
        segmentBytes,
        retention: KEEPS_ALL,
        storePath: join(made, 'store'),
      })
      const beganMs = performance.now()
      await appliance.importFiles('scale', file)
      say('import, in memory', { seconds: seconds(beganMs) })
    }
    execFileSync('cp', ['-r', join(made, 'store'), storePath])
    execFileSync('sync')
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

/** Returns how many packets each host has. */
async function writePackets(path: string, count: number): Promise<ReadonlyMap<string, number>> {
  const random = seededRandom(1)
  const packetsOfHost = new Map<string, number>()
  await using file = await open(path, 'w')
  await file.write(makePcap([]))
  for (let first = 0; first < count; first += 10_000) {
    const records: Buffer[] = []
    for (let index = first; index < Math.min(first + 10_000, count); index++) {
      const captured = Buffer.alloc(PACKET_BYTES, index & 255)
      captured.writeUInt16BE(0x0800, 12)
      captured[14] = 0x45
      const hosts = [random.integer(0, HOSTS - 1), random.integer(0, HOSTS - 1)]
      for (const [at, host] of hosts.entries()) captured.writeUInt32BE(0x0a_00_00_00 + host, 26 + 4 * at)
      for (const host of new Set(hosts))
        packetsOfHost.set(hostOf(host), (packetsOfHost.get(hostOf(host)) ?? 0) + 1)
      const ns = BEGIN_NS + BigInt(index) * 1_000_000n
      records.push(makeRecord({ ns, originalLength: PACKET_BYTES, captured }))
    }
    await file.write(Buffer.concat(records))
  }
  return packetsOfHost
}

function hostOf(host: number): string {
  return `10.0.${host >> 8}.${host & 255}`
}

async function measure(
  appliance: TempAppliance,
  state: string,
  packetsOfHost: ReadonlyMap<string, number>,
): Promise<void> {
  await seen(appliance, [hostOf(0)], {})
  for (const [what, question] of [
    ['one address that is there', (n: number) => hostOf(n)],
    ['one address that is absent', (n: number) => `172.16.${n >> 8}.${n & 255}`],
  ] as const) {
    const warm: number[] = []
    const before = await bytesRead()
    for (let n = 0; n < QUESTIONS; n++) warm.push((await seen(appliance, [question(n)], {})).ms)
    const KiB = Math.round(((await bytesRead()) - before) / QUESTIONS / 1024)
    say(`${state}: ${what}, warm`, { ...spread(warm), KiB })
    const cold: number[] = []
    for (let n = 0; n < COLD_QUESTIONS && (await dropCaches()); n++) {
      cold.push((await seen(appliance, [question(1000 + n)], {})).ms)
    }
    say(`${state}: ${what}, cold`, spread(cold))
  }
  const list = Array.from({ length: LIST }, (_, n) => hostOf(n))
  for (const verify of [{}, { Verify: '1', VerifyBytesMax: `${2n ** 40n}` }]) {
    const { ms, lines } = await seen(appliance, list, verify)
    const isRight = list.every((host) => {
      const line = lines.get(host)
      if (!('Verify' in verify)) return line !== undefined || !packetsOfHost.has(host)
      return Number(line?.packets ?? 0) === (packetsOfHost.get(host) ?? 0)
    })
    say(`${state}: ${LIST} addresses ${JSON.stringify(verify)}`, { seconds: ms / 1000, right: isRight })
  }
  const ruledOut = await ruledOutSegments(appliance)
  const beganMs = performance.now()
  const query = new URLSearchParams({ ...RANGE, FilterBPF: `host ${hostOf(1)}` })
  const { body } = await appliance.get(`/api/v1/pcap/timerange?${query}`)
  const packets = readPcap(body).records.length
  say(`${state}: download of one host`, {
    seconds: seconds(beganMs),
    segmentsNotOpened: (await ruledOutSegments(appliance)) - ruledOut,
    right: packets === (packetsOfHost.get(hostOf(1)) ?? 0),
  })
}

interface SeenLine {
  readonly address?: string
  readonly packets?: string
}

async function seen(
  appliance: TempAppliance,
  addresses: readonly string[],
  pairs: Readonly<Record<string, string>>,
): Promise<{ readonly ms: number; readonly lines: ReadonlyMap<string, SeenLine> }> {
  const beganMs = performance.now()
  const { status, body } = await appliance.get('/api/v1/seen', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ ...RANGE, ...pairs, Address: addresses.join('\n') }).toString(),
  })
  const ms = performance.now() - beganMs
  const lines = body.toString().trim().split('\n')
  if (status !== 200 || !/"end":true.*"complete":true/.test(lines.at(-1) ?? '')) throw new Error(lines.at(-1))
  const parsed = lines.map((line) => JSON.parse(line) as SeenLine)
  return {
    ms,
    lines: new Map(parsed.flatMap((line) => (line.address === undefined ? [] : [[line.address, line]]))),
  }
}

async function ruledOutSegments({ get }: TempAppliance): Promise<number> {
  const { body } = await get('/metrics')
  return Number(/^capfleet_ruled_out_segments_total (\d+)$/m.exec(body.toString())?.[1] ?? 0)
}

async function bytesRead(): Promise<number> {
  return Number(/^rchar: (\d+)$/m.exec(await readFile('/proc/self/io', 'utf8'))?.[1])
}

/** False without the right to do so. */
async function dropCaches(): Promise<boolean> {
  return await writeFile('/proc/sys/vm/drop_caches', '3').then(
    () => true,
    () => false,
  )
}

function spread(times: readonly number[]): Record<string, number> {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
  return { p50Ms: round(at(0.5)), p99Ms: round(at(0.99)), questions: sorted.length }
}

function seconds(beganMs: number): number {
  return round((performance.now() - beganMs) / 1000)
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

function say(what: string, figures: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${what}: ${JSON.stringify(figures)}\n`)
}
