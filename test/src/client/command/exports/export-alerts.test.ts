// `capfleet export create --alert`: exports with the packets that `capfleet get --alert` downloads.
import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ethernet, ipv4, PROTOCOL, TYPE, tagged, tcp } from '../../../../support/packets/packet-layers.ts'
import { makePcap } from '../../../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap } from '../../../../support/packets/pcap-records.ts'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../../support/processes/client-process.ts'
import { type SmallFleet, startSmallFleet } from '../../../../support/processes/small-fleet.ts'
import { startTempWorker } from '../../../../support/processes/temp-worker.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

/** 2026-11-02T09:00:00Z */
const NINE_NS = 1_793_610_000_000_000_000n
const SECOND_NS = 1_000_000_000n
const NOW_NS = BigInt(Date.now()) * 1_000_000n

const record = (ns: bigint, captured: Buffer): PcapRecord => ({
  ns,
  originalLength: captured.length,
  captured,
})
/** From 10.0.0.1:51234 to 10.0.1.<host>:443. */
const packetTo = (host: number) =>
  ipv4(PROTOCOL.tcp, tcp(51_234, 443, Buffer.from(`to ${host}`)), { from: 1, to: host })
const plain = (host: number) => ethernet(TYPE.ipv4, packetTo(host))
const behindTag = (host: number) => ethernet(TYPE.vlan, tagged(7, TYPE.ipv4, packetTo(host)))
const cooked = (host: number) =>
  Buffer.concat([Buffer.from('00000001000602000000000100000800', 'hex'), packetTo(host)])

/** Each second has a packet of each conversation; `frames` makes one. */
function capture(fromNs: bigint, seconds: number, frames: readonly Buffer[], linkType = 1): Buffer {
  const records = Array.from({ length: seconds }, (_, second) =>
    frames.map((frame, index) => record(fromNs + BigInt(second) * SECOND_NS + BigInt(index), frame)),
  )
  return makePcap(records.flat(), { linkType })
}

const DAY_NS = 86_400n * SECOND_NS
const FILES: Readonly<Record<string, Buffer>> = {
  // Conversation 2 was seen on both devices, 3 and 4 on "east" only.
  'east-first': capture(NINE_NS, 20, [plain(2), behindTag(2), plain(3), plain(5)]),
  'west-first': capture(NINE_NS + 500_000_000n, 20, [plain(2), plain(6)]),
  'east-second': capture(NOW_NS - 20n * SECOND_NS, 10, [plain(4)]),
  'west-second': capture(NINE_NS + DAY_NS, 3, [cooked(2), cooked(3)], 113),
}

interface ShownExport {
  readonly state: string
  readonly reason: string
  readonly devices: readonly { readonly device: string }[]
}

describe('capfleet export create --alert', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let client: TempClient

  before(async () => {
    fleet = parts.use(await startSmallFleet([], (name) => FILES[name], { exports: { perUserMax: LIVE_MAX } }))
    client = parts.use(await hostedClient())
    parts.use(await startTempWorker(fleet.gateway))
  })
  after(() => parts.disposeAsync())

  const run = (args: readonly string[], input = '') =>
    client.run(args, { environment: gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD), input })
  const create = (input: string, ...args: readonly string[]) =>
    run(['export', 'create', '--alert', '-', ...args], input)
  const idsIn = (stdout: Buffer) => stdout.toString().split('\n').slice(0, -1)
  const shown = async (id: string): Promise<ShownExport> => {
    const { stdout, stderr } = await run(['export', 'show', id, '-o', 'json'])
    assert.notEqual(stdout.length, 0, stderr)
    return JSON.parse(stdout.toString()) as ShownExport
  }
  const devicesOf = async (id: string) => (await shown(id)).devices.map(({ device }) => device)
  const cancel = async (ids: readonly string[]) => {
    for (const id of ids) assert.equal((await run(['export', 'cancel', id])).status, 0)
  }

  test('has the packets of the download, from the devices that saw the conversation', async () => {
    const alerts = alertTo(2) + alertTo(3) + alertTo(2, { timestamp: '2026-11-02T09:00:16.000000+0000' })
    const margins = ['--before', '1s', '--after', '2s']
    const ordered = await create(alerts, ...margins, '--watch')
    assert.equal(ordered.status, 0, ordered.stderr)
    assert.match(ordered.stderr, /^standard input: 3 alerts in 3 lines: 3 exports$/m)
    const ids = idsIn(ordered.stdout)
    for (const id of ids) assert.match(ordered.stderr, new RegExp(`^export ${id}: complete, 1 file, `, 'm'))
    assert.deepEqual(await Promise.all(ids.map(devicesOf)), [['east', 'west'], ['east', 'west'], ['east']])
    const folder = join(client.folder, 'alerts')
    const got = await run(['get', '--alert', '-', ...margins, '-o', `${folder}/`], alerts)
    assert.equal(got.status, 0, got.stderr)
    const downloads = await Promise.all(
      (await readdir(folder)).map(async (name) => (await readFile(join(folder, name))).toString('hex')),
    )
    const exported: string[] = []
    for (const id of ids) {
      const output = join(client.folder, `${id}.pcap`)
      assert.equal((await run(['export', 'get', id, '-o', output])).status, 0)
      const bytes = await readFile(output)
      assert.ok(readPcap(bytes).records.length > 0)
      exported.push(bytes.toString('hex'))
    }
    assert.deepEqual(exported.toSorted(), downloads.toSorted())
  })

  test('equal alerts are ordered once, unless --force orders them again', async () => {
    const alerts = alertTo(5) + alertTo(5, { alert: { signature: 'again' } }) + alertTo(6)
    const first = await create(alerts, '--watch')
    assert.equal(first.status, 0, first.stderr)
    const ids = idsIn(first.stdout)
    assert.equal(ids.length, 2)
    const [id = ''] = ids
    assert.match(first.stderr, new RegExp(`^export ${id} \\(\\w+\\): "one" and 1 more$`, 'm'))
    assert.equal((await shown(id)).reason, 'one and 1 more')
    const again = await create(alerts)
    assert.deepEqual(idsIn(again.stdout), ids)
    assert.match(again.stderr, new RegExp(`^export ${id} \\(complete\\): `, 'm'))
    const other = await create(alerts, '--reason', 'ticket 7', '--watch')
    const forced = await create(alerts, '--force', '--watch')
    const all = [...ids, ...idsIn(other.stdout), ...idsIn(forced.stdout)]
    assert.equal(new Set(all).size, 6, `${other.stderr}\n${forced.stderr}`)
    assert.equal((await shown(all[2] ?? '')).reason, 'ticket 7')
  })

  test('what was seen on other devices meanwhile is no other order', async () => {
    const alert = alertTo(3, { timestamp: '2026-11-02T09:00:12.000000+0000' })
    const [id = ''] = idsIn((await create(alert, '--after', '1s', '--watch')).stdout)
    assert.deepEqual(await devicesOf(id), ['east'])
    const [, west] = fleet.appliances
    const path = join(client.folder, 'late.pcap')
    await writeFile(path, capture(NINE_NS + 12n * SECOND_NS, 1, [plain(3)]))
    await west?.importFiles('west-late', path)
    assert.deepEqual(idsIn((await create(alert, '--after', '1s')).stdout), [id])
    const forced = idsIn((await create(alert, '--after', '1s', '--force', '--watch')).stdout)
    assert.deepEqual(await devicesOf(forced[0] ?? ''), ['east', 'west'])
  })

  test('one that was cancelled or removed is ordered again', async () => {
    // Its end is in the future: it waits.
    const alert = alertTo(4, { timestamp: isoOf(NOW_NS), flow: { start: isoOf(NOW_NS - 15n * SECOND_NS) } })
    const ids: string[] = []
    for (let round = 0; round < 2; round += 1) {
      const { status, stdout, stderr } = await create(alert, '--after', '1d')
      assert.equal(status, 0, stderr)
      ids.push(...idsIn(stdout))
      await cancel(ids.slice(-1))
    }
    await cancel(ids)
    const [last = ''] = idsIn((await create(alert, '--after', '1d')).stdout)
    assert.equal(new Set([...ids, last]).size, 3)
    // Other devices may see more of it until then.
    assert.deepEqual(await devicesOf(last), ['east', 'west'])
    await cancel([last])
  })

  test('finds the packets in cooked captures', async () => {
    const alert = alertTo(3, { timestamp: '2026-11-03T09:00:00.500000+0000' })
    const ordered = await create(alert, '--watch')
    assert.equal(ordered.status, 0, ordered.stderr)
    assert.match(ordered.stderr, /cooked or raw captures have no VLAN tags/)
    const output = join(client.folder, 'cooked.pcap')
    const [id = ''] = idsIn(ordered.stdout)
    assert.equal((await run(['export', 'get', id, '-o', output])).status, 0)
    const { linkType, records } = readPcap(await readFile(output))
    assert.deepEqual([linkType, records.length], [113, 3])
    assert.deepEqual(idsIn((await create(alert)).stdout), [id])
  })

  test('nothing is no failure where one device would refuse a filter for VLAN tags', async () => {
    // The newest capture of "west" is a cooked one.
    const alert = alertTo(2, { timestamp: '2026-11-02T07:00:00.000000+0000' })
    const ordered = await create(alert, '--watch')
    assert.equal(ordered.status, 0, ordered.stderr)
    assert.match(ordered.stderr, /: complete, 1 file, 24 B \(0 packets: nothing matched\)$/m)
    const output = join(client.folder, 'nothing.pcap')
    const got = await run(['get', '--alert', '-', '-o', output], alert)
    assert.equal(got.status, 0, got.stderr)
    assert.match(got.stderr, /0 packets: nothing matched/)
  })

  test('a user with too many exports is told how to order the others', async () => {
    const alerts = [10, 11, 12, 13].map((host) => alertTo(host, { timestamp: isoOf(NOW_NS) })).join('')
    const { status, stdout, stderr } = await create(alerts, '--after', '1d')
    assert.equal(status, 5, stderr)
    assert.match(
      stderr,
      /at most 3 are allowed.*; 3 of 4 are ordered; the same command orders the others later \[user-quota\]/,
    )
    const ids = idsIn(stdout)
    assert.equal(ids.length, LIVE_MAX)
    const [first = ''] = ids
    await cancel([first])
    // Those that are waiting count no second time, and the one that was cancelled is ordered again.
    const rest = await create(alerts, '--after', '1d')
    assert.equal(rest.status, 5, rest.stderr)
    assert.deepEqual(idsIn(rest.stdout).slice(1), ids.slice(1))
    await cancel(idsIn(rest.stdout))
  })

  test('what fails for one alert stops no other', async () => {
    const vxlan = alertTo(2, { proto: 'UDP', dest_port: 4_789, timestamp: '2026-11-03T09:00:00.500000+0000' })
    const good = alertTo(2, { timestamp: '2026-11-02T09:00:01.000000+0000' })
    const { status, stdout, stderr } = await create(`${vxlan}broken\n${good}`, '--watch')
    assert.equal(status, 7, stderr)
    assert.match(stderr, /^capfleet: "one": this conversation may be a tunnel.* \[bad-bpf\]$/m)
    assert.match(stderr, /line 2: "broken" is not understood/)
    assert.match(stderr, /^capfleet: 1 of 2 exports failed \[bad-bpf\]$/m)
    assert.equal(idsIn(stdout).length, 1)
    const mistaken = await create(`broken\n${good}`)
    assert.equal(mistaken.status, 7)
    assert.match(mistaken.stderr, /1 line of standard input could not be read.* \[bad-alerts\]/)
  })

  test('refuses what cannot be meant before it orders anything', async () => {
    for (const [args, said, input = ''] of [
      [['--alert', '-', '--last', '1h'], /leave out --begin and --last/],
      [['--alert', '-', 'east-first'], /leave out the name of the capture/],
      [['--alert', '-', '--alerts-max', '1'], /more than 1 exports.*--alerts-max/, alertTo(2) + alertTo(3)],
      [['--last', '1h', '--after', '5m'], /--after belongs to --alert/],
      [['--last', '1h', '--force'], /--force belongs to --alert/],
    ] as const) {
      const { status, stdout, stderr } = await run(['export', 'create', ...args], input)
      assert.deepEqual([status, stdout.length], [2, 0], stderr)
      assert.match(stderr, said)
    }
  })
})

/** Exports of a user that have not ended. */
const LIVE_MAX = 3

/** An alert of Suricata about the conversation of packetTo(). */
function alertTo(host: number, fields: object = {}): string {
  return `${JSON.stringify({
    timestamp: '2026-11-02T09:00:05.000000+0000',
    event_type: 'alert',
    src_ip: '10.0.0.1',
    src_port: 51_234,
    dest_ip: `10.0.1.${host}`,
    dest_port: 443,
    proto: 'TCP',
    alert: { signature: 'one', severity: 1 },
    ...fields,
  })}\n`
}

function isoOf(ns: bigint): string {
  return new Date(Number(ns / 1_000_000n)).toISOString()
}
