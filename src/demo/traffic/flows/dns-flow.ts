import type { FlowPacket, FlowPath } from '../flow-packet.ts'
import { udpPacket } from '../packet-bytes.ts'
import type { Random } from '../random.ts'

/** The name, and the answer: 4 or 16 bytes, or nothing if the name does not exist. */
export interface DnsLookup {
  readonly name: string
  readonly address: Buffer | undefined
}

const TYPE_A = 1
const TYPE_AAAA = 28
const FLAGS_QUERY = 0x0100
const FLAGS_ANSWER = 0x8180
const FLAGS_NO_SUCH_NAME = 0x8183
const POINTER_TO_QUESTION = 0xc00c

/** A query and its response (RFC 1035). */
export function dnsFlow(path: FlowPath, random: Random, { name, address }: DnsLookup): FlowPacket[] {
  const id = random.below(0x10000)
  const type = (address?.byteLength ?? 4) === 16 ? TYPE_AAAA : TYPE_A
  const question = Buffer.concat([encodeName(name), words(type, 1)])
  const query = Buffer.concat([words(id, FLAGS_QUERY, 1, 0, 0, 0), question])
  const flags = address === undefined ? FLAGS_NO_SUCH_NAME : FLAGS_ANSWER
  const head = words(id, flags, 1, address === undefined ? 0 : 1, 0, 0)
  const response = Buffer.concat([
    head,
    question,
    ...(address === undefined ? [] : [record(type, address, random)]),
  ])
  const { client, server, vlan } = path
  const identification = random.below(0x10000)
  const servedNs = path.roundTripNs + BigInt(random.between(50_000, 3_000_000))
  return [
    {
      offsetNs: 0n,
      fromClient: true,
      bytes: udpPacket({ from: client, to: server, vlan, identification }, query),
    },
    {
      offsetNs: servedNs,
      fromClient: false,
      bytes: udpPacket({ from: server, to: client, vlan, identification }, response),
    },
  ]
}

function record(type: number, address: Buffer, random: Random): Buffer {
  const ttlS = random.pick([60, 300, 3600])
  return Buffer.concat([words(POINTER_TO_QUESTION, type, 1, 0, ttlS, address.byteLength), address])
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`))
  return Buffer.concat([...labels, Buffer.from([0])])
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  for (const [i, value] of values.entries()) bytes.writeUInt16BE(value, i * 2)
  return bytes
}
