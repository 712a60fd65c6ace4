/**
 * Devices that hold one PCAP file each and send it from memory as fast as this machine can, in the same way as our
 * appliance. `node files-upstream.ts <file> ...`; the device of the n-th file is below /dN. Prints its address. All
 * other requests get a short JSON answer.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const CHUNK_BYTES = 1_048_576
const JSON_ANSWER = JSON.stringify({ version: '1.2.3', device: 'bench', build: '' })

const bodies = process.argv.slice(2).map((path) => readFileSync(path))
const server = createServer((req, res) => {
  const index = /^\/d(\d+)\/.*\/pcap\//.exec(req.url ?? '')?.[1]
  const body = index === undefined ? undefined : bodies[Number(index)]
  if (body === undefined) res.setHeader('Content-Type', 'application/json').end(JSON_ANSWER)
  else void sendDownload(res, body)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
process.once('SIGTERM', () => process.exit(0))

async function sendDownload(res: ServerResponse, body: Buffer): Promise<void> {
  res.writeHead(200, { Trailer: 'Capfleet-Complete', 'Capfleet-Order': 'time' })
  for (let at = 0; at < body.byteLength && !res.destroyed; at += CHUNK_BYTES) {
    const chunk = body.subarray(at, at + CHUNK_BYTES)
    await new Promise<void>((resolve) => res.write(chunk, () => resolve()))
  }
  res.addTrailers({ 'Capfleet-Complete': '1' })
  res.end()
}
