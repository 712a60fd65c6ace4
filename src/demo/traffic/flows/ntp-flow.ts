import type { FlowPacket, FlowPath } from '../flow-packet.ts'
import { udpPacket } from '../packet-bytes.ts'
import type { Random } from '../random.ts'

/** Seconds from 1900 to 1970: NTP counts from the former. */
const NTP_EPOCH_S = 2_208_988_800n
const CLIENT_MODE = 0x23
const SERVER_MODE = 0x24

/** One NTP exchange (RFC 5905) with a stratum 2 server. */
export function ntpFlow(path: FlowPath, random: Random, startNs: bigint): FlowPacket[] {
  const { client, server, vlan, roundTripNs } = path
  const received = startNs + roundTripNs / 2n
  const query = Buffer.alloc(48)
  query[0] = CLIENT_MODE
  query[2] = 6
  query[3] = 0xe9
  writeTime(query, 40, startNs)
  const answer = Buffer.alloc(48)
  answer[0] = SERVER_MODE
  answer[1] = 2
  answer[2] = 6
  answer[3] = 0xe8
  answer.writeUInt32BE(random.between(100, 2000), 4)
  answer.writeUInt32BE(random.between(100, 2000), 8)
  server.ip.copy(answer, 12, 0, 4)
  writeTime(answer, 16, startNs - BigInt(random.between(1, 60)) * 1_000_000_000n)
  writeTime(answer, 24, startNs)
  writeTime(answer, 32, received)
  writeTime(answer, 40, received + 20_000n)
  const identification = random.below(0x10000)
  return [
    {
      offsetNs: 0n,
      fromClient: true,
      bytes: udpPacket({ from: client, to: server, vlan, identification }, query),
    },
    {
      offsetNs: roundTripNs,
      fromClient: false,
      bytes: udpPacket({ from: server, to: client, vlan, identification }, answer),
    },
  ]
}

function writeTime(message: Buffer, at: number, ns: bigint): void {
  message.writeUInt32BE(Number((ns / 1_000_000_000n + NTP_EPOCH_S) & 0xffffffffn), at)
  message.writeUInt32BE(Number(((ns % 1_000_000_000n) << 32n) / 1_000_000_000n), at + 4)
}
