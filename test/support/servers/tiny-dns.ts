/** A real DNS server that answers from a table; without `place` on a free UDP loopback port. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'

/** Rows of "name TYPE data": for A and AAAA an address, for SRV "port target". */
export type DnsTable = readonly (readonly [name: string, type: 'A' | 'AAAA' | 'SRV', data: string])[]

const TYPES: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA', 33: 'SRV' }
const NXDOMAIN = 3
const SERVFAIL = 2

export class TinyDns implements AsyncDisposable {
  table: DnsTable
  /** Answers every question with SERVFAIL. */
  isBroken = false
  /** Does not answer. */
  isSilent = false
  questions = 0
  readonly #socket: Socket

  private constructor(table: DnsTable) {
    this.table = table
    this.#socket = createSocket('udp4')
    this.#socket.on('message', (query, from) => this.#answer(query, from))
  }

  static async start(table: DnsTable, place = { port: 0, address: '127.0.0.1' }): Promise<TinyDns> {
    const dns = new TinyDns(table)
    dns.#socket.bind(place)
    await once(dns.#socket, 'listening')
    return dns
  }

  /** The address in the form of dnsServers. */
  get address(): string {
    const { address, port } = this.#socket.address()
    return `${address}:${port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => this.#socket.close(() => resolve()))
  }

  #answer(query: Buffer, from: RemoteInfo): void {
    this.questions += 1
    if (this.isSilent) return
    const { name, end } = readName(query, 12)
    const type = TYPES[query.readUInt16BE(end)]
    const ofName = this.table.filter((row) => row[0].toLowerCase() === name.toLowerCase())
    const rows = this.isBroken ? [] : ofName.filter((row) => row[1] === type)
    const code = this.isBroken ? SERVFAIL : ofName.length === 0 ? NXDOMAIN : 0
    const head = Buffer.alloc(12)
    query.copy(head, 0, 0, 2)
    head.writeUInt16BE(0x8580 | code, 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(rows.length, 6)
    const records = rows.map((row) => recordOf(query.subarray(12, end), query.readUInt16BE(end), row))
    this.#socket.send(Buffer.concat([head, query.subarray(12, end + 4), ...records]), from.port, from.address)
  }
}

function recordOf(name: Buffer, type: number, [, kind, data]: DnsTable[number]): Buffer {
  const body = kind === 'SRV' ? srvData(data) : addressData(data)
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(1, 2)
  fixed.writeUInt16BE(body.length, 8)
  return Buffer.concat([name, fixed, body])
}

function srvData(data: string): Buffer {
  const [port = '', target = ''] = data.split(' ')
  const labels = target
    .split('.')
    .map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)]))
  const fixed = Buffer.alloc(6)
  fixed.writeUInt16BE(Number(port), 4)
  return Buffer.concat([fixed, ...labels, Buffer.of(0)])
}

/** IPv6 addresses in their full form of eight groups. */
function addressData(text: string): Buffer {
  if (!text.includes(':')) return Buffer.from(text.split('.').map(Number))
  return Buffer.from(
    text
      .split(':')
      .map((group) => group.padStart(4, '0'))
      .join(''),
    'hex',
  )
}

function readName(message: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = []
  let at = start
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), end: at + 1 }
}
