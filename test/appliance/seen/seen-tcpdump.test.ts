/** /api/v1/seen and tcpdump find the same packets of an address, whatever is around its header. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import {
  arp,
  bytesOf,
  ethernet,
  gre,
  hex,
  icmpEcho,
  ipv4,
  ipv6,
  mpls,
  PROTOCOL,
  TYPE,
  tagged,
  tcp,
  udp,
  vxlan,
} from '../../support/packets/packet-layers.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import type { PcapRecord } from '../../support/packets/pcap-records.ts'
import { startTempAppliance } from '../../support/processes/temp-appliance.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

const PACKETS = 10_000
/** Most of them occur in a few packets. */
const HOSTS = 120
/** Small segments, so that tables and sieves rule out most of them. */
const SEGMENT_BYTES = 1 << 16
const VXLAN_PORT = 4789
const FRAGMENT_OFFSET = 185
const HOP_BY_HOP = hex('3a00050200000100')

/** The layers around the addresses of the outermost header; the addresses inside of tunnels are others. */
function frame(random: SeededRandom): Buffer {
  const ends = () => ({ from: random.integer(1, HOSTS), to: random.integer(1, HOSTS) })
  const data = Buffer.alloc(random.integer(0, 60), 0xaa)
  const segment = udp(random.integer(1, 65_535), 53, data)
  const inner = () =>
    ipv4(PROTOCOL.udp, segment, { from: random.integer(200, 250), to: random.integer(200, 250) })
  const innerFrame = () => ethernet(TYPE.ipv4, inner())
  const [type, payload]: readonly [number, Buffer] = random.pick([
    () => [TYPE.ipv4, ipv4(PROTOCOL.udp, segment, ends())] as const,
    () => [TYPE.ipv4, ipv4(PROTOCOL.tcp, tcp(1, 2, data), { ...ends(), options: hex('01010101') })] as const,
    () => [TYPE.ipv4, ipv4(PROTOCOL.udp, data, { ...ends(), fragment: 0x2000 + FRAGMENT_OFFSET })] as const,
    () => [TYPE.ipv4, ipv4(PROTOCOL.icmp, icmpEcho(false, 1, data), ends())] as const,
    () => [TYPE.ipv4, ipv4(PROTOCOL.ipInIp, inner(), ends())] as const,
    () => [TYPE.ipv4, ipv4(PROTOCOL.gre, gre(TYPE.ipv4, inner()), ends())] as const,
    () => [TYPE.ipv4, ipv4(PROTOCOL.udp, udp(1, VXLAN_PORT, vxlan(7, innerFrame())), ends())] as const,
    () => [TYPE.ipv6, ipv6(PROTOCOL.tcp, tcp(1, 2, data), ends())] as const,
    () => [TYPE.ipv6, ipv6(0, Buffer.concat([HOP_BY_HOP, data]), ends())] as const,
    () => [TYPE.ipv6, ipv6(44, Buffer.concat([hex('1100000100000001'), data]), ends())] as const,
    () => [TYPE.ipv6, ipv6(PROTOCOL.ipInIp, inner(), ends())] as const,
    () => [TYPE.arp, arp(random.integer(0, 1) === 1, ends())] as const,
    // Neither tcpdump's "host" nor a search looks behind it.
    () => [TYPE.mpls, mpls([17], inner())] as const,
  ])()
  const tags = random.pick([[], [], [TYPE.vlan], [TYPE.serviceVlan, TYPE.vlan], [TYPE.oldVlan, TYPE.vlan]])
  let [outerType, outer] = [type, payload]
  for (const tag of tags.toReversed())
    [outerType, outer] = [tag, tagged(random.integer(1, 4094), outerType, outer)]
  return ethernet(outerType, outer)
}

function made(random: SeededRandom): PcapRecord[] {
  return Array.from({ length: PACKETS }, (_, index) => {
    const whole = frame(random)
    // A few are cut off, also inside of a header.
    const captured = random.integer(0, 9) === 0 ? whole.subarray(0, random.integer(0, whole.length)) : whole
    return {
      ns: 1_700_000_000_000_000_000n + BigInt(index) * 1_000_000n,
      originalLength: whole.length,
      captured,
    }
  })
}

function addressesOfHosts(): string[] {
  return Array.from({ length: HOSTS }, (_, index) => index + 1).flatMap((host) => [
    `10.0.0.${host}`,
    `10.0.1.${host}`,
    `2001:db8::${bytesOf(host, 1).toString('hex').replace(/^0/, '')}`,
  ])
}

async function countedByTcpdump(file: string, address: string): Promise<number> {
  const host = `host ${address}`
  const expression = `${host} or (vlan and (${host} or (vlan and ${host})))`
  const { stdout } = await promisify(execFile)('tcpdump', ['-nr', file, '--count', expression])
  return Number(/^(\d+) packet/m.exec(stdout)?.[1])
}

test('every address that tcpdump finds is found, with as many packets', async () => {
  const random = seededRandom()
  await using appliance = await startTempAppliance({ segmentBytes: SEGMENT_BYTES })
  const file = join(appliance.folder, 'made.pcap')
  await writeFile(file, makePcap(made(random)))
  await appliance.importFiles('made', file)
  const addresses = addressesOfHosts()
  const seen = async (Verify: string): Promise<ReadonlyMap<string, { readonly packets?: string }>> => {
    const answer = await appliance.get('/api/v1/seen', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        TSBegin: '0',
        TSEnd: '4294967296',
        TSUnit: 'sec',
        Verify,
        Address: addresses.join('\n'),
      }).toString(),
    })
    assert.equal(answer.status, 200, answer.body.toString().slice(0, 500))
    const lines = answer.body.toString().trim().split('\n')
    assert.match(lines.at(-1) ?? '', /"end":true.*"complete":true/)
    return new Map(
      lines.slice(0, -1).map((line) => {
        const found = JSON.parse(line) as { readonly address: string; readonly packets?: string }
        return [found.address, found]
      }),
    )
  }
  const [found, verified] = [await seen('0'), await seen('1')]
  let total = 0
  for (const address of addresses) {
    const wanted = await countedByTcpdump(file, address)
    assert.equal(Number(verified.get(address)?.packets ?? 0), wanted, `${address} (SEED=${random.seed})`)
    assert.ok(wanted === 0 || found.has(address), `${address} (SEED=${random.seed})`)
    total += wanted
  }
  assert.ok(total > PACKETS, String(total))
})
