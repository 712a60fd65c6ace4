import assert from 'node:assert/strict'
import { test } from 'node:test'
import { packetStatistics } from '../../../../src/console/dissection/packet-statistics.ts'
import type { Packet } from '../../../../src/console/inside/pcap-packets.ts'

const RAW_IP = 101

/** An IPv4 packet of UDP. */
function udp(
  from: number,
  to: number,
  [fromPort, toPort]: readonly [number, number],
  length: number,
): Packet {
  const bytes = Buffer.alloc(28)
  bytes[0] = 0x45
  bytes[9] = 17
  bytes.set([10, 0, 0, from], 12)
  bytes.set([10, 0, 0, to], 16)
  bytes.writeUInt16BE(fromPort, 20)
  bytes.writeUInt16BE(toPort, 22)
  return { ns: 5n, device: 'east', bytes, length, linkType: RAW_IP }
}

const other: Packet = { ns: 9n, device: 'east', bytes: Buffer.alloc(20), length: 60, linkType: 1 }

test('both directions are one conversation, and the largest is first', () => {
  const { talkers, conversations, protocols } = packetStatistics([
    { packet: udp(1, 2, [5000, 53], 100), protocol: 'DNS' },
    { packet: udp(2, 1, [53, 5000], 300), protocol: 'DNS' },
    { packet: udp(3, 1, [9, 9], 1_000), protocol: 'UDP' },
    { packet: other, protocol: 'ARP' },
  ])
  assert.deepEqual(
    conversations.map(({ name, packets, bytes, filter }) => [name, packets, bytes, filter]),
    [
      [
        '10.0.0.1:9 ↔ 10.0.0.3:9 UDP',
        1,
        1_000,
        'ip.addr eq 10.0.0.1 and ip.addr eq 10.0.0.3 and udp.port eq 9 and udp.port eq 9',
      ],
      [
        '10.0.0.1:5000 ↔ 10.0.0.2:53 UDP',
        2,
        400,
        'ip.addr eq 10.0.0.1 and ip.addr eq 10.0.0.2 and udp.port eq 5000 and udp.port eq 53',
      ],
    ],
  )
  assert.deepEqual(
    talkers.map(({ name, packets, bytes }) => [name, packets, bytes]),
    [
      ['10.0.0.1', 3, 1_400],
      ['10.0.0.3', 1, 1_000],
      ['10.0.0.2', 2, 400],
    ],
  )
  assert.deepEqual(
    protocols.map(({ name, packets, bytes }) => [name, packets, bytes]),
    [
      ['UDP', 1, 1_000],
      ['DNS', 2, 400],
      ['ARP', 1, 60],
    ],
  )
})
