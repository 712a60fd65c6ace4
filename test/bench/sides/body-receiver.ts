/**
 * Receives downloads through the gateway's streams and drops them: the minimum cost of a merge. `node body-receiver.ts
 * <device address> ...` prints its address; a GET receives all at the same time and is answered when all have ended.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Device } from '../../../src/gateway/device/device.ts'
import { DeviceClient } from '../../../src/gateway/device/device-client.ts'
import { openSource } from '../../../src/gateway/fetch/stream/source.ts'
import { Secret } from '../../../src/shared/base/secret.ts'

const LIMITS = { connectTimeoutMs: 5_000, idleTimeoutMs: 30_000 }
const TARGET = '/api/v1/pcap/timerange'

const clients = process.argv
  .slice(2)
  .map(
    (url, index) =>
      new DeviceClient(new Device({ name: `d${index}`, url, user: 'u', password: new Secret('p') }), LIMITS),
  )
const server = createServer(async (_req, res) => {
  const bytes = await Promise.all(clients.map(receive))
  res.end(`${bytes.reduce((sum, one) => sum + one, 0)}\n`)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
process.once('SIGTERM', () => process.exit(0))

async function receive(client: DeviceClient): Promise<number> {
  const { signal } = new AbortController()
  const step = { device: client.device.name, target: TARGET, isForced: false }
  using source = await openSource(client, step, {
    caller: 'bench',
    signal,
    startTimeoutMs: 15_000,
  })
  let bytes = 0
  for await (const chunk of source.body) bytes += chunk.byteLength
  return bytes
}
