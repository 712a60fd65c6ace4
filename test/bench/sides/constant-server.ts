/**
 * The floor for every download: an HTTP server that sends the same buffer again and again. Shows the throughput of this
 * machine's loopback, Node and curl at that moment.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const CHUNK = Buffer.alloc(1_048_576, 1)

export interface ConstantServer extends AsyncDisposable {
  readonly url: string
}

/** Answers every request with `bytes` bytes, rounded up to 1 MiB. */
export async function startConstantServer(bytes: number): Promise<ConstantServer> {
  const server = createServer(async (_, res) => {
    for (let sent = 0; sent < bytes && !res.destroyed; sent += CHUNK.byteLength) {
      await new Promise<void>((resolve) => res.write(CHUNK, () => resolve()))
    }
    res.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
