import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import { type SiteTraffic, writeSiteTraffic } from '../../../../src/demo/traffic/site-traffic.ts'
import { type PcapRecord, readPcap } from '../../../support/packets/pcap-records.ts'

const run = promisify(execFile)
const START_NS = 1_760_000_000_000_000_000n
const SITES = [0, 1, 2] as const
/** The demo's own number at night. */
const PACKETS = process.env.CAPFLEET_LONG === '1' ? undefined : 20_000

const folder = await mkdtemp(join(tmpdir(), 'capfleet-traffic-'))
const paths = SITES.map((site) => join(folder, `site${site}.pcap`))
const made: SiteTraffic[] = []
let records: (readonly PcapRecord[])[] = []

before(async () => {
  for (const site of SITES)
    made.push(
      await writeSiteTraffic(paths[site] ?? '', {
        ...{ site, seed: 7, startNs: START_NS },
        ...(PACKETS === undefined ? {} : { packets: PACKETS }),
      }),
    )
  records = await Promise.all(paths.map(async (path) => readPcap(await readFile(path)).records))
})

test.after(() => rm(folder, { recursive: true }))

test('each site has as many packets as are asked for, by default 100,000, over about five minutes, in order of time', () => {
  for (const site of SITES) {
    const packets = records[site] ?? []
    assert.ok(packets.length >= (PACKETS ?? 100_000))
    const last = packets.at(-1)?.ns ?? 0n
    assert.deepEqual(made[site], { packets: packets.length, firstNs: packets[0]?.ns, lastNs: last })
    assert.ok(packets[0] !== undefined && packets[0].ns - START_NS < 1_000_000_000n)
    assert.ok(last - START_NS > 280_000_000_000n && last - START_NS < 320_000_000_000n)
    assert.ok(packets.every(({ ns }, i) => i === 0 || ns >= (packets[i - 1]?.ns ?? ns)))
    const bytes = packets.reduce((sum, packet) => sum + packet.originalLength, 0)
    assert.ok(bytes / packets.length > 200 && bytes / packets.length < 700)
  }
})

test('tshark finds nothing malformed, no wrong checksum, no gap in a TCP flow', async () => {
  const checks = ['ip', 'tcp', 'udp'].flatMap((name) => ['-o', `${name}.check_checksum:TRUE`])
  const filter =
    '_ws.malformed || _ws.expert.severity == error || ip.checksum.status == 0 || tcp.checksum.status == 0' +
    ' || udp.checksum.status == 0 || icmp.checksum.status == 0 || tcp.analysis.flags'
  for (const [site, path] of paths.entries()) {
    // One site to its end: all are made by the same flows.
    const packets = site === 0 ? [] : ['-c', '5000']
    const { stdout } = await run('tshark', ['-r', path, ...packets, ...checks, '-Y', filter])
    assert.equal(stdout, '')
    const good = 'ip.checksum.status == 1 && tcp.checksum.status == 1'
    const counted = await run('tshark', ['-r', path, '-c', '2000', ...checks, '-Y', good])
    assert.ok(counted.stdout.split('\n').length > 500, 'the checksums were really looked at')
  }
})

test('every kind of traffic is there', async () => {
  const kinds = [
    'dns.id',
    'http.request.method',
    'http.response.code',
    'ntp.stratum',
    'syslog.msg',
    'icmp.type',
  ]
  kinds.push('vlan.id', 'ipv6.src', 'tls.handshake.extensions_server_name', 'tls.handshake.ciphersuite')
  const fields = kinds.flatMap((kind) => ['-e', kind])
  const { stdout } = await run('tshark', ['-r', paths[0] ?? '', '-c', '20000', '-T', 'fields', ...fields], {
    maxBuffer: 100_000_000,
  })
  const rows = stdout.split('\n').map((line) => line.split('\t'))
  const counts = kinds.map((kind, column) => [kind, rows.filter((row) => row[column]).length] as const)
  assert.deepEqual(
    counts.filter(([, count]) => count < 20),
    [],
  )
  const multicast = (records[0] ?? []).filter(({ captured }) => ((captured[0] ?? 0) & 1) === 1)
  assert.ok(multicast.length > 1000)
})

test('flows over a leased line are seen at both sites, apart from MAC and time to live, milliseconds apart', () => {
  for (const [a, b] of [
    [0, 1],
    [1, 2],
    [0, 2],
  ] as const) {
    const atB = new Map(
      (records[b] ?? []).filter(isBetweenSites).map((record) => [sameEverywhere(record), record.ns]),
    )
    const shared = (records[a] ?? []).filter((record) => atB.has(sameEverywhere(record)))
    assert.ok(shared.length > 1000, `${shared.length} packets at sites ${a} and ${b}`)
    for (const record of shared) {
      const apartNs = (atB.get(sameEverywhere(record)) ?? 0n) - record.ns
      const distanceNs = apartNs < 0n ? -apartNs : apartNs
      assert.ok(distanceNs > 1_000_000n && distanceNs < 20_000_000n)
    }
  }
})

test('the same seed gives the same bytes, another seed or site others', async () => {
  const options = { site: 0, seed: 3, startNs: START_NS, durationS: 20, packets: 4000 } as const
  const hash = async (changed: { seed?: number; site?: 0 | 1 | 2 }) => {
    const path = join(folder, 'hashed.pcap')
    await writeSiteTraffic(path, { ...options, ...changed })
    return createHash('sha256')
      .update(await readFile(path))
      .digest('hex')
  }
  const first = await hash({})
  assert.equal(await hash({}), first)
  assert.equal(first, 'b73d1f8aee2dfff621ba1ff71c4d485cc4ebcd35d116b8344001c843ae1a9b51')
  assert.notEqual(await hash({ seed: 4 }), first)
  assert.notEqual(await hash({ site: 1 }), first)
})

test('planted flows are added to the same packets', async () => {
  const options = { site: 0, seed: 3, startNs: START_NS, durationS: 20, packets: 4000 } as const
  const [plain, added] = [join(folder, 'plain.pcap'), join(folder, 'added.pcap')]
  const bytes = Buffer.from('planted'.padEnd(60, '.'))
  const packets = [3n, 6n].map((second) => ({ offsetNs: second * 1_000_000_000n, fromClient: true, bytes }))
  await writeSiteTraffic(plain, options)
  await writeSiteTraffic(added, { ...options, planted: [{ startNs: START_NS, packets }] })
  const [before, after] = await Promise.all(
    [plain, added].map(async (path) => readPcap(await readFile(path)).records),
  )
  const isPlanted = ({ captured }: PcapRecord) => captured.equals(bytes)
  assert.deepEqual(
    after?.filter(isPlanted).map(({ ns }) => ns),
    [START_NS + 3_000_000_000n, START_NS + 6_000_000_000n],
  )
  assert.deepEqual(
    after?.filter((record) => !isPlanted(record)),
    before,
  )
})

test('an abort ends the writing with its reason', async () => {
  const reason = new Error('enough')
  const path = join(folder, 'aborted.pcap')
  const writing = writeSiteTraffic(path, {
    site: 0,
    seed: 1,
    startNs: START_NS,
    signal: AbortSignal.abort(reason),
  })
  await assert.rejects(writing, reason)
})

/** IPv4 from 10.2x to 10.2y through Ethernet without a tag. */
function isBetweenSites({ captured }: PcapRecord): boolean {
  return (
    captured.readUInt16BE(12) === 0x0800 &&
    captured[26] === 10 &&
    captured[30] === 10 &&
    captured[27] !== captured[31]
  )
}

/** The packet without the fields that may differ: MAC addresses, time to live and header checksum. */
function sameEverywhere({ captured }: PcapRecord): string {
  return Buffer.concat([
    captured.subarray(14, 22),
    captured.subarray(23, 24),
    captured.subarray(26),
  ]).toString('latin1')
}
