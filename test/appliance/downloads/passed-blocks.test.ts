// Blocks that a filter skips by their sieves, with tcpdump as the oracle for the packets that it must find.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { randomMixedPacket } from '../../support/packets/mixed-packets.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const PACKETS = 9_000
const CAPTURED_LENGTH = 800
/** This many packets have the same server: some three blocks. */
const PACKETS_PER_SERVER = 1_000
const VLAN = 0x8100

let appliance: TempAppliance
let file: string

before(async () => {
  appliance = await startTempAppliance()
  file = join(appliance.folder, 'servers.pcap')
  const random = seededRandom(SEED)
  const records = Array.from({ length: PACKETS }, (_, index): PcapRecord => {
    const { ns, captured } = randomMixedPacket(random, 1_795_000_000_000_000_000n + BigInt(index))
    const packet = Buffer.concat([captured, Buffer.alloc(Math.max(0, CAPTURED_LENGTH - captured.length))])
    let type = 12
    while (packet.readUInt16BE(type) === VLAN) type += 4
    packet.set([10, 1, Math.floor(index / PACKETS_PER_SERVER), 1], type + random.pick([14, 18]))
    return { ns, originalLength: packet.length, captured: packet }
  })
  await writeFile(file, makePcap(records))
  await appliance.importFiles('servers', file)
})
after(() => appliance[Symbol.asyncDispose]())

async function passedBlocks(): Promise<number> {
  const metrics = (await appliance.get('/metrics')).body.toString()
  return Number(/^capfleet_passed_blocks_total (\d+)$/m.exec(metrics)?.[1])
}

/** How many blocks were skipped by a filter that finds the same packets as tcpdump. */
async function passedFor(expression: string, headers: Record<string, string> = {}): Promise<number> {
  const query = new URLSearchParams({ StreamName: 'servers', FilterBPF: expression })
  const before = await passedBlocks()
  const answer = await appliance.get(`/api/v1/pcap/single?${query}`, { headers })
  const theirs = execFileSync('tcpdump', ['-r', file, '--nano', '-w', '-', expression], {
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 1 << 28,
  })
  assert.equal(answer.trailers['capfleet-complete'], '1')
  assert.deepEqual(
    recordLines(readPcap(answer.body).records),
    recordLines(readPcap(theirs).records),
    `${expression}, SEED=${SEED}`,
  )
  return (await passedBlocks()) - before
}

test('most blocks are skipped for an address that few of them have', async () => {
  for (const expression of [
    'host 10.1.3.1',
    'src host 10.1.7.1 and udp',
    'host 10.1.0.1 or host 10.1.8.1',
    'vlan and host 10.1.2.1',
    'host 10.1.5.1 or (vlan and host 10.1.5.1)',
    'host 10.1.200.1',
  ]) {
    const passed = await passedFor(expression)
    assert.ok(passed >= 10, `${expression}: ${passed}`)
  }
})

test('every block is read where any of them may hold what is asked for', async () => {
  for (const expression of [
    'not host 10.1.3.1',
    'udp port 53',
    'host 10.1.3.1 or port 80',
    'net 10.0.0.0/8',
  ]) {
    assert.equal(await passedFor(expression), 0, expression)
  }
})

test('every block is read for a gateway that has forced a filter upon its caller', async () => {
  const forced = { 'Capfleet-Forced-Filter': 'true' }
  for (const expression of ['host 10.1.3.1', '(udp) and (host 10.1.200.1)'])
    assert.equal(await passedFor(expression, forced), 0, expression)
})

test('addresses within tunnels are found', async () => {
  // Every server has some packets in tunnels, which sieves do not cover.
  const query = new URLSearchParams({
    StreamName: 'servers',
    FilterBPF: 'src host 10.0.0.7',
    FilterBPFDecap: 'true',
  })
  const before = await passedBlocks()
  const answer = await appliance.get(`/api/v1/pcap/single?${query}`)
  assert.ok(readPcap(answer.body).records.length > PACKETS / 50)
  assert.equal(await passedBlocks(), before)
})
