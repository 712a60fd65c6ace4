/**
 * Receives downloads with Node's HTTP client and drops them, as most programs of this platform do. `node
 * http-get-receiver.ts <device address> ...` prints its address; a GET receives all at the same time and is answered
 * when all have ended.
 */
import { once } from 'node:events'
import { Agent, createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

const TARGET = '/api/v1/pcap/timerange'

const addresses = process.argv.slice(2)
const agent = new Agent({ keepAlive: true })
const server = createServer(async (_req, res) => {
  const bytes = await Promise.all(addresses.map(receive))
  res.end(`${bytes.reduce((sum, one) => sum + one, 0)}\n`)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
process.once('SIGTERM', () => process.exit(0))

async function receive(address: string): Promise<number> {
  const [answer] = (await once(get(address + TARGET, { agent }), 'response')) as [IncomingMessage]
  let bytes = 0
  answer.on('data', (chunk: Buffer) => (bytes += chunk.byteLength))
  await once(answer, 'end')
  return bytes
}
