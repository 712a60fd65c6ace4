import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Flow } from '../../../../src/demo/traffic/flow-schedule.ts'
import { incidentFlows } from '../../../../src/demo/traffic/incident-flows.ts'

const START_NS = 1_793_610_000_000_000_000n
const NS_PER_S = 1_000_000_000n
const SYN = 2
const SYN_ACK = 18

const [newYork, london, singapore] = ([0, 1, 2] as const).map((site) => incidentFlows(site, START_NS))

interface SeenPacket {
  readonly ns: bigint
  readonly from: string
  readonly to: string
  /** The IPv4 header's identification, addresses, and everything after it: the same at both sites. */
  readonly content: string
  readonly bytes: Buffer
}

/** All packets are IPv4 without a VLAN tag, with an IP header of 20 bytes. */
function packetsOf(flows: readonly Flow[] = []): readonly SeenPacket[] {
  return flows
    .flatMap(({ startNs, packets }) =>
      packets.map(({ offsetNs, bytes }) => ({
        ns: startNs + offsetNs,
        from: `${bytes.subarray(26, 30).join('.')}:${bytes.readUInt16BE(34)}`,
        to: `${bytes.subarray(30, 34).join('.')}:${bytes.readUInt16BE(36)}`,
        content: `${bytes.toString('latin1', 18, 22)}${bytes.toString('latin1', 26)}`,
        bytes,
      })),
    )
    .sort((a, b) => Number(a.ns - b.ns))
}

test('flows are in order of their beginning, and Singapore sees none', () => {
  for (const flows of [newYork, london])
    assert.ok(flows?.every(({ startNs }, i) => i === 0 || startNs >= (flows[i - 1]?.startNs ?? startNs)))
  assert.deepEqual(singapore, [])
})

test('the scan tries 16 ports of 254 addresses within two seconds; three answer', () => {
  const scanned = packetsOf(london).filter(
    ({ from, bytes }) => from === '10.20.3.77:54321' && bytes[47] === SYN,
  )
  assert.equal(new Set(scanned.map(({ to }) => to)).size, 16 * 254)
  const [first, last] = [scanned[0]?.ns ?? 0n, scanned.at(-1)?.ns ?? 0n]
  assert.ok(first >= START_NS + 150n * NS_PER_S && last < START_NS + 153n * NS_PER_S)
  const accepted = packetsOf(london).filter(
    ({ to, bytes }) => to === '10.20.3.77:54321' && bytes[47] === SYN_ACK,
  )
  assert.deepEqual(accepted.map(({ from }) => from).sort(), [
    '10.21.9.25:445',
    '10.21.9.80:443',
    '10.21.9.80:80',
  ])
})

test('beacons are sent every 20 seconds, and only New York sees them', () => {
  const outside = (flows: readonly Flow[] | undefined) =>
    packetsOf(flows).filter(({ to, bytes }) => to === '203.0.113.99:80' && bytes[47] === SYN)
  const times = outside(newYork).map(({ ns }) => (ns - START_NS) / NS_PER_S)
  assert.deepEqual(
    times,
    Array.from({ length: 15 }, (_, n) => 7n + 20n * BigInt(n)),
  )
  assert.deepEqual(outside(london), [])
})

test('the names of the DNS queries are the stolen file, in order', () => {
  const queries = packetsOf(newYork).filter(({ to }) => to === '10.20.3.77:53')
  const labels = queries.map(({ bytes }) => labelsOf(bytes.subarray(54)))
  assert.deepEqual(
    labels.map(([number]) => Number(number)),
    labels.map((_, n) => n),
  )
  const hex = labels.flatMap((name) => name.slice(1, -2)).join('')
  const lines = Buffer.from(hex, 'hex').toString().trimEnd().split('\n')
  assert.equal(lines[0], 'number,name,account,balance')
  assert.match(lines.at(-1) ?? '', /^0160,Customer 0160,/)
  assert.equal(lines.length, 161)
})

test('New York and London see the same packets of scan and theft, milliseconds apart', () => {
  const isInside = ({ from, to }: SeenPacket) => from.startsWith('10.') && to.startsWith('10.')
  const atLondon = new Map(packetsOf(london).map((packet) => [packet.content, packet]))
  const atNewYork = packetsOf(newYork).filter(isInside)
  assert.equal(atNewYork.length, atLondon.size)
  for (const packet of atNewYork) {
    const same = atLondon.get(packet.content)
    assert.ok(same !== undefined, `${packet.from} to ${packet.to}`)
    const apartNs = same.ns - packet.ns
    assert.equal(apartNs > 0n, packet.from.startsWith('10.20.'), 'the sender is nearer to its own site')
    assert.ok((apartNs < 0n ? -apartNs : apartNs) < 20_000_000n)
    assert.notDeepEqual(same.bytes.subarray(0, 12), packet.bytes.subarray(0, 12), 'MAC addresses')
  }
})

/** The labels of the name at the start of the bytes. */
function labelsOf(bytes: Buffer): string[] {
  const labels: string[] = []
  for (let at = 0, length = bytes[0] ?? 0; length > 0; at += length + 1, length = bytes[at] ?? 0)
    labels.push(bytes.toString('latin1', at + 1, at + 1 + length))
  return labels
}
