/** An unmodified http-proxy in front of one address: `node pipe-proxy.ts <upstream>`. Prints its address. */
import { once } from 'node:events'
import { Agent, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import httpProxy from 'http-proxy'

const proxy = httpProxy.createProxyServer({
  target: process.argv[2] ?? '',
  agent: new Agent({ keepAlive: true }),
})
const server = createServer((req, res) => proxy.web(req, res))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
process.once('SIGTERM', () => process.exit(0))
