/**
 * A device as fast as this machine can simulate one: a program that sends the same records again and again as a
 * download, in the same way as our appliance. `node pcap-upstream.ts <bytes>`; a path with "bytes=N" gets N bytes
 * instead. Prints its address. All other requests get a short JSON answer.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { formatPcapHeader } from '../../../src/shared/pcap/pcap-header.ts'

/** A 16-byte header and 700 bytes of packet: the mean of the traffic mixes of the benches. */
const CAPTURED_BYTES = 700
const RECORD_BYTES = 16 + CAPTURED_BYTES
const RECORDS = makeRecords(Math.floor(1_048_576 / RECORD_BYTES))
const HEADER = formatPcapHeader({ linkType: 1, snaplen: 262_144, nanoseconds: true })
const JSON_ANSWER = JSON.stringify({ version: '1.2.3', device: 'bench', build: '', text: 'x'.repeat(160) })

const totalBytes = Number(process.argv[2] ?? 1_073_741_824)
/** The gateway wants an address of its own for each device; proxies use the first one. */
const addresses = Number(process.argv[3] ?? 1)

function answer(req: IncomingMessage, res: ServerResponse): void {
  const isDownload = req.url?.includes('/pcap/')
  if (!isDownload) return void res.setHeader('Content-Type', 'application/json').end(JSON_ANSWER)
  const asked = /[?&]StreamName=bytes-(\d+)/.exec(req.url ?? '')?.[1]
  void sendDownload(res, asked === undefined ? totalBytes : Number(asked))
}

const urls: string[] = []
for (let number = 0; number < addresses; number += 1) {
  const server = createServer(answer)
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}
process.stdout.write(`${urls.join(' ')}\n`)
process.once('SIGTERM', () => process.exit(0))

async function sendDownload(res: ServerResponse, bytes: number): Promise<void> {
  res.writeHead(200, { Trailer: 'Capfleet-Complete' })
  res.write(HEADER)
  for (let sent = 0; sent < bytes && !res.destroyed; sent += RECORDS.byteLength) {
    await new Promise<void>((resolve) => res.write(RECORDS, () => resolve()))
  }
  res.addTrailers({ 'Capfleet-Complete': '1' })
  res.end()
}

function makeRecords(count: number): Buffer {
  const records = Buffer.alloc(count * RECORD_BYTES, 0x55)
  for (let at = 0; at < records.byteLength; at += RECORD_BYTES) {
    records.writeUInt32LE(1_700_000_000, at)
    records.writeUInt32LE(0, at + 4)
    records.writeUInt32LE(CAPTURED_BYTES, at + 8)
    records.writeUInt32LE(CAPTURED_BYTES, at + 12)
  }
  return records
}
