/** Starting and stopping an HTTP server with limits that slow or hostile clients cannot exhaust. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CapfleetError } from './error.ts'

export interface ListenOptions {
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
}

export interface RunningServer {
  /** With the real port, without a final slash. */
  readonly url: string
  /** Takes no new connection, lets running answers end for `drainMs`, then cuts the rest. */
  close(drainMs: number): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 30_000
const TIMEOUT_CHECK_MS = 1_000
/** A filter expression may have 16 KiB, which percent-encoding makes three times as long. */
const HEADER_MAX_BYTES = 64 * 1024
/** Long enough for scripts that ask every minute; shorter than common proxies' own idle limits. */
const KEEP_ALIVE_MS = 65_000

export async function listen(handler: RequestListener, options: ListenOptions): Promise<RunningServer> {
  const server = createServer(
    {
      maxHeaderSize: HEADER_MAX_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    handler,
  )
  server.listen(options.port, options.host)
  try {
    await once(server, 'listening')
  } catch (cause) {
    throw new CapfleetError(
      'bad-config',
      `cannot listen on ${options.host}:${options.port}: ${String(cause)}`,
      { cause },
    )
  }
  return { url: urlOf(server), close: (drainMs) => closeServer(server, drainMs) }
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

async function closeServer(server: Server, drainMs: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  const cut = setTimeout(() => server.closeAllConnections(), drainMs)
  await closed
  clearTimeout(cut)
}
