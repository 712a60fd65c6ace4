import type { FlowPacket, FlowPath } from '../flow-packet.ts'
import { icmpEchoPacket } from '../packet-bytes.ts'
import type { Random } from '../random.ts'

const PAYLOAD = Buffer.from(Array.from({ length: 56 }, (_, i) => i))

/** A ping of three to six echoes, one a second. IPv4 only. */
export function pingFlow(path: FlowPath, random: Random): FlowPacket[] {
  const { client, server, vlan, roundTripNs } = path
  const identifier = random.below(0x10000)
  let identification = random.below(0x10000)
  const count = random.between(3, 6)
  return Array.from({ length: count }, (_, n) => {
    const echo = { identifier, sequence: n + 1, payload: PAYLOAD }
    const sentNs = BigInt(n) * 1_001_000_000n
    const answeredNs = sentNs + roundTripNs + BigInt(random.between(10_000, 200_000))
    identification++
    const request = icmpEchoPacket({ from: client, to: server, vlan, identification }, { type: 8, ...echo })
    const reply = icmpEchoPacket({ from: server, to: client, vlan, identification }, { type: 0, ...echo })
    return [
      { offsetNs: sentNs, fromClient: true, bytes: request },
      { offsetNs: answeredNs, fromClient: false, bytes: reply },
    ]
  }).flat()
}
