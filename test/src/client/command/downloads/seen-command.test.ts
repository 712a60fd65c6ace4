// `capfleet seen`, and `capfleet get --seen`: what a user reads, gets, and what a script learns.
import assert from 'node:assert/strict'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { NODE_OPTIONS } from '../../../../../src/demo/child-program.ts'
import { mountSmallDisk } from '../../../../support/disks/small-disk.ts'
import { makePcap } from '../../../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap } from '../../../../support/packets/pcap-records.ts'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../../support/processes/client-process.ts'
import {
  type SmallFleet,
  SMALL_FLEET_START_NS as START_NS,
  startSmallFleet,
} from '../../../../support/processes/small-fleet.ts'
import { onTerminal } from '../../../../support/processes/terminal.ts'
import { REPOSITORY_ROOT } from '../../../../support/repository-files.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

const CAPFLEET = [process.execPath, ...NODE_OPTIONS, `${REPOSITORY_ROOT}src/cli.ts`].join(' ')
const MINUTE_NS = 60_000_000_000n
const RANGE = ['--begin', String(START_NS), '--end', String(START_NS + 120n * MINUTE_NS)]
const BOTH = '10.7.0.1'
const EASTERN = '10.7.0.2'
const EASTERN_MINUTE = 100
/** Its packets fill a disk. */
const LARGE = '10.7.0.3'
const LARGE_BYTES = 1_200
const NOWHERE = '198.18.0.1'

/** UDP from 192.0.2.1. */
function packetTo(address: string, ns: bigint, bytes = 60): PcapRecord {
  const captured = Buffer.alloc(bytes)
  captured.writeUInt16BE(0x0800, 12)
  captured.set([0x45, 0, 0, 46], 14)
  captured.set([64, 17], 22)
  captured.set([192, 0, 2, 1], 26)
  captured.set(address.split('.').map(Number), 30)
  return { ns, originalLength: bytes, captured }
}

/** A packet each minute, in the first hour; those to EASTERN are in a capture of their own. */
function captureOf(name: string): Buffer {
  const [address, minutes, count] = name === 'east-second' ? [EASTERN, EASTERN_MINUTE, 3] : [BOTH, 0, 60]
  return makePcap(
    Array.from({ length: count }, (_, index) =>
      packetTo(address, START_NS + BigInt(minutes + index) * MINUTE_NS),
    ),
  )
}

describe('capfleet seen', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let client: TempClient
  before(async () => {
    const users = [{ name: 'filtered', role: 'user', filter: 'udp' }] as const
    fleet = parts.use(await startSmallFleet(users, captureOf))
    client = parts.use(await hostedClient())
  })
  after(() => parts.disposeAsync())

  const environment = (user = 'user') => gatewayEnvironment(fleet.gateway.url, user, USER_PASSWORD)
  const run = (args: readonly string[], user?: string) => client.run(args, { environment: environment(user) })

  test('prints a table, sorted, and what was counted', async () => {
    const { status, stdout, stderr } = await run(['seen', BOTH, EASTERN, '--verify', ...RANGE])
    assert.equal(status, 0, stderr)
    assert.equal(stderr, '')
    const [head, ...rows] = stdout
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/).map((cell) => cell.trim()))
    assert.deepEqual(head, ['ADDRESS', 'DEVICE', 'FIRST', 'LAST', 'PACKETS', 'BYTES', 'UNCOUNTED'])
    assert.deepEqual(rows.map(([address, device, , , packets]) => [address, device, packets]).toSorted(), [
      [BOTH, 'east', '60'],
      [BOTH, 'west', '120'],
      [EASTERN, 'east', '3'],
    ])
  })

  test('prints CSV, lines of JSON, and the lines of the gateway', async () => {
    const args = ['seen', EASTERN, '--device', 'east', '--verify', ...RANGE]
    const csv = (await run([...args, '-o', 'csv'])).stdout.toString()
    const [firstNs, lastNs] = [100n, 102n].map((minute) => START_NS + minute * MINUTE_NS)
    assert.equal(
      csv.replaceAll('\r', ''),
      `address,device,first,last,packets,bytes,uncounted\n${EASTERN},east,${firstNs},${lastNs},3,180,0\n`,
    )
    const [line] = (await run([...args, '-o', 'jsonl'])).stdout.toString().split('\n')
    const row = {
      device: 'east',
      address: EASTERN,
      packets: '3',
      bytes: '180',
      firstNs: String(firstNs),
      lastNs: String(lastNs),
      spans: [],
    }
    assert.deepEqual(JSON.parse(line ?? ''), row)
    const lines = (await run([...args, '-o', 'json'])).stdout.toString().trimEnd().split('\n')
    assert.equal(JSON.parse(lines.at(-1) ?? '').complete, true)
    assert.ok(lines.some((one) => JSON.parse(one).address === EASTERN))
  })

  test('takes a file, and standard input, with the addresses of the command line', async () => {
    const file = join(client.folder, 'iocs.txt')
    await writeFile(file, `# indicators\n${NOWHERE}\n${EASTERN}\n`)
    const ofFile = await run(['seen', BOTH, '--file', file, '--verify', '-o', 'csv', ...RANGE])
    assert.equal(ofFile.status, 0, ofFile.stderr)
    assert.equal(ofFile.stdout.toString().split('\n').length, 5)
    const piped = await client.run(['seen', '--file', '-', '--verify', '-o', 'csv', ...RANGE], {
      environment: environment(),
      input: `${EASTERN}\n`,
    })
    assert.match(piped.stdout.toString(), new RegExp(`^${EASTERN},east,`, 'm'))
  })

  test('says that an address was not seen, and what is wrong with a command', async () => {
    const nowhere = await run(['seen', NOWHERE, '--verify', ...RANGE])
    assert.equal(nowhere.status, 0)
    assert.match(nowhere.stderr, /^capfleet: not seen on any of 2 devices$/m)
    for (const [args, words] of [
      [['seen', '--last', '1d'], /name an address: capfleet seen/],
      [['seen', '10.7.0', '--last', '1d'], /"10\.7\.0" is no IPv4 or IPv6 address/],
      [['seen', BOTH], /--begin/],
      [['seen', BOTH, '--bpf', 'udp', ...RANGE], /--bpf needs --?verify/i],
      [['seen', '--file', '10.7.0.1', ...RANGE], /--file takes a file, and .* write capfleet seen <address>/],
      [['seen', '--file', '/no/such/file', ...RANGE], /--file: the file \/no\/such\/file does not exist/],
      [['get', 'east-first', '--seen', BOTH], /leave out the name/],
      [['get', '--seen', BOTH], /--seen searches a time range/],
      [['get', '--seen', BOTH, '--addresses', '-', ...RANGE], /--addresses/],
    ] as const) {
      const { status, stderr } = await run(args)
      assert.equal(status, 2, `${args.join(' ')}: ${stderr}`)
      assert.match(stderr, words)
    }
  })

  test('shows progress on a terminal only', async () => {
    const { status, shown } = await onTerminal(
      `${CAPFLEET} seen ${EASTERN} --verify -d east ${RANGE.join(' ')}`,
      [],
      environment(),
    )
    assert.equal(status, 0, shown)
    assert.match(shown, /seen: \d+ found/)
    assert.match(shown, /10\.7\.0\.2 +east/)
  })

  test('get --seen downloads these packets, from these devices, in the shortest range', async () => {
    const file = join(client.folder, 'seen.pcap')
    for (const user of ['user', 'filtered']) {
      const { status, stderr } = await run(['get', '--seen', EASTERN, ...RANGE, '-o', file, '--force'], user)
      assert.equal(status, 0, stderr)
      const { records } = readPcap(await readFile(file))
      assert.deepEqual(
        records.map(({ ns }) => (ns - START_NS) / MINUTE_NS),
        [100n, 101n, 102n],
      )
      const list = await fetch(`${fleet.gateway.url}/v1/requests?Limit=1`, {
        headers: fleet.gateway.basic(user),
      })
      const [receipt] = (
        (await list.json()) as { requests: { devices: { device: string }[]; query: string }[] }
      ).requests
      assert.deepEqual(
        receipt?.devices.map(({ device }) => device),
        ['east'],
      )
      const query = new URLSearchParams(receipt?.query)
      assert.deepEqual(
        ['TSBegin', 'TSEnd'].map((name) => BigInt(query.get(name) ?? 0) - START_NS),
        [100n * MINUTE_NS, 102n * MINUTE_NS + 1n],
      )
    }
    const nowhere = await run(['get', '--seen', NOWHERE, ...RANGE, '-o', file, '--force'])
    assert.equal(nowhere.status, 4, nowhere.stderr)
    assert.match(nowhere.stderr, /not seen in this range/)
  })

  test('get --seen resumes the range that it found before, when there are more packets now', async (t) => {
    const [east] = fleet.appliances
    const more = async (name: string, minute: number, packets: number) => {
      const path = join(client.folder, `${name}.pcap`)
      const beginNs = START_NS + BigInt(minute) * MINUTE_NS
      const records = Array.from({ length: packets }, (_, index) =>
        packetTo(LARGE, beginNs + BigInt(index), LARGE_BYTES),
      )
      await writeFile(path, makePcap(records))
      await east?.importFiles(name, path)
    }
    await more('large-first', 10, 3_000)
    const disk = await mountSmallDisk(9_000_000)
    if (typeof disk === 'string') return t.skip(disk)
    await using _mounted = disk
    const [file, other] = ['large.pcap', 'other'].map((name) => join(disk.path, name)) as [string, string]
    await writeFile(other, Buffer.alloc(6_500_000))
    const get = (...flags: readonly string[]) => run(['get', '--seen', LARGE, ...RANGE, '-o', file, ...flags])
    const full = await get()
    assert.equal(full.status, 8, full.stderr)
    await more('large-second', 20, 1)
    await rm(other)
    const resumed = await get()
    assert.equal(resumed.status, 0, resumed.stderr)
    assert.match(resumed.stderr, /large\.pcap: resumes what was found before; --force searches again/)
    assert.match(resumed.stderr, /resuming after the \d+ bytes/)
    assert.equal(readPcap(await readFile(file)).records.length, 3_000)
    assert.equal((await get('--force')).status, 0)
    assert.equal(readPcap(await readFile(file)).records.length, 3_001)
  })

  test('a device that does not answer is named, and the status says so', async () => {
    await fleet.appliances[1]?.closeAppliance(0)
    const found = await run(['seen', EASTERN, ...RANGE])
    assert.equal(found.status, 7, found.stderr)
    assert.match(found.stdout.toString(), new RegExp(`${EASTERN} +east`))
    assert.match(found.stderr, /west: .* \[device-unreachable\]/)
    assert.match(found.stderr, /incomplete: not answered by west/)
    const file = join(client.folder, 'part.pcap')
    const refused = await run(['get', '--seen', EASTERN, ...RANGE, '-o', file])
    assert.equal(refused.status, 6)
    assert.match(refused.stderr, /not answered by west; --on-error partial downloads/)
    const all = await run(['get', ...RANGE, '-o', file])
    assert.equal(all.status, 6)
    assert.match(
      all.stderr,
      /west .*; --on-error partial downloads what the others have \[device-unreachable\]$/m,
    )
    const one = await run(['get', ...RANGE, '-d', 'west', '-o', file])
    assert.doesNotMatch(one.stderr, /--on-error/)
    const part = await run(['get', '--seen', EASTERN, ...RANGE, '-o', file, '--on-error', 'partial'])
    assert.equal(part.status, 7, part.stderr)
    assert.equal(readPcap(await readFile(file)).records.length, 3)
  })
})
