/** Starting and stopping an HTTP server with limits that slow or hostile clients cannot exhaust. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, Server as TlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { CapfleetError } from './error.ts'
import { followConnections } from './reset-connection.ts'

export interface ListenOptions {
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  /** Files in PEM; with them the server speaks HTTPS only. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
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

/** Fails with bad-config when it cannot listen or the TLS files cannot be used. */
export async function listen(handler: RequestListener, options: ListenOptions): Promise<RunningServer> {
  const server = await createListener(inTurn(handler), options)
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

async function createListener(handler: RequestListener, { tls }: ListenOptions): Promise<Server> {
  const limits = {
    maxHeaderSize: HEADER_MAX_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Nearly all requests have no body: nobody needs the events of an empty stream for each.
    optimizeEmptyRequests: true,
  }
  if (tls === undefined) return createServer(limits, handler)
  try {
    const [cert, key] = await Promise.all([readFile(tls.cert), readFile(tls.key)])
    // Alone, Node would refuse a client that offers HTTP/1.0 by name, as curl --http1.0 does.
    const ALPNProtocols = ['http/1.1', 'http/1.0']
    const server = createTlsServer({ ...limits, cert, key, ALPNProtocols, minVersion: 'TLSv1.2' }, handler)
    followConnections(server)
    return server
  } catch (cause) {
    throw new CapfleetError('bad-config', `cannot use listen.tls (${String(cause)})`, { cause })
  }
}

/**
 * Begins a pipelined request when the answers before it have ended. Node would begin it at once, and
 * tell it nothing when the connection breaks meanwhile.
 */
function inTurn(handler: RequestListener): RequestListener {
  return (req, res) => {
    if (res.socket === null) res.once('socket', () => handler(req, res))
    else handler(req, res)
  }
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  const scheme = server instanceof TlsServer ? 'https' : 'http'
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

async function closeServer(server: Server, drainMs: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  const cut = setTimeout(() => server.closeAllConnections(), drainMs)
  await closed
  clearTimeout(cut)
}
