/** Starting and stopping an HTTP server with limits that slow or hostile clients cannot exhaust. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { CapfleetError } from '../base/error.ts'
import type { Metrics } from '../base/metrics.ts'
import { closeServer } from './close-server.ts'
import { type ConnectionLimitSettings, ConnectionLimits } from './connection-limits.ts'
import { isBehindTheLast } from './lingering-close.ts'
import { followConnections } from './reset-connection.ts'
import { RunningAnswers } from './running-answers.ts'
import { readServerCertificate, type ServerCertificate, type TlsFiles } from './server-certificate.ts'

export interface ListenOptions extends ConnectionLimitSettings {
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  /** With it the server speaks HTTPS only. */
  readonly tls?: TlsFiles | undefined
}

export interface RunningServer {
  /** With the real port, without a final slash. */
  readonly url: string
  /**
   * Reads the files of `tls` again: connections from now on are made with what is in them, those that there
   * are go on. Fails with bad-config; nothing has changed then. Without `tls` there is nothing to do.
   */
  reloadCertificate(): Promise<void>
  /** From now on each connection ends with its next answer. */
  drain(): void
  /**
   * Takes no new connection, lets running answers end and their clients take them for `drainMs`, then cuts the rest.
   * Connections without an answer hold nothing up.
   */
  close(drainMs: number): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 30_000
const TIMEOUT_CHECK_MS = 1_000
/** A filter expression may have 16 KiB, which percent-encoding makes three times as long. */
const HEADER_MAX_BYTES = 64 * 1024
/** Long enough for scripts that ask every minute; shorter than common proxies' own idle limits. */
const KEEP_ALIVE_MS = 65_000
/** The same for a connection on which nobody has shown who they are: it need not be there when it asks again. */
const STRANGER_KEEP_ALIVE_MS = 5_000
/** Scripts and browsers wait for an answer before they ask again; what sends far ahead only costs memory. */
const REQUESTS_WAITING_MAX = 32

/** The same for one whose last answer could not say that it is the last, while the server drains. */
const LAST_KEEP_ALIVE_MS = 100

/** Connections that have carried a request with the right credentials. */
const KNOWN = new WeakSet<Socket>()

/** Whoever is behind the connection has shown who they are: it may be idle for as long as those of users. */
export function keepConnection(socket: Socket): void {
  KNOWN.add(socket)
}

/** Fails with bad-config when it cannot listen or the TLS files cannot be used. */
export async function listen(
  handler: RequestListener,
  options: ListenOptions,
  metrics: Metrics,
): Promise<RunningServer> {
  const limits = new ConnectionLimits(options, metrics)
  const answers = new RunningAnswers()
  const onRequest: RequestListener = (req, res) => {
    answers.add(res)
    if (!KNOWN.has(req.socket)) res.once('finish', () => hastenStranger(req.socket, server))
    handler(req, res)
  }
  let certificate = options.tls && (await readServerCertificate(options.tls))
  const server = createListener(inTurn(onRequest, limits), certificate)
  limits.guard(server)
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
  publishTls(server, () => certificate, metrics)
  const drain = () => {
    server.keepAliveTimeout = LAST_KEEP_ALIVE_MS
    answers.drain()
  }
  return {
    url: urlOf(server),
    reloadCertificate: async () => {
      if (options.tls === undefined || !(server instanceof TlsServer)) return
      certificate = await readServerCertificate(options.tls)
      server.setSecureContext(certificate.context)
    },
    drain,
    close: async (drainMs) => {
      drain()
      await closeServer(server, { answers, limits }, drainMs)
    },
  }
}

function createListener(handler: RequestListener, certificate: ServerCertificate | undefined): Server {
  const limits = {
    maxHeaderSize: HEADER_MAX_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Nearly all requests have no body: nobody needs the events of an empty stream for each.
    optimizeEmptyRequests: true,
  }
  if (certificate === undefined) return createServer(limits, handler)
  const { context } = certificate
  // Alone, Node would refuse a client that offers HTTP/1.0 by name, as curl --http1.0 does.
  const ALPNProtocols = ['http/1.1', 'http/1.0']
  const agreed = {
    ALPNProtocols,
    handshakeTimeout: HEADERS_TIMEOUT_MS,
    requestCert: context.ca !== undefined,
  }
  const server = createTlsServer({ ...limits, ...agreed, ...context }, handler)
  followConnections(server)
  return server
}

function publishTls(server: Server, current: () => ServerCertificate | undefined, metrics: Metrics): void {
  metrics.figures(
    'tls_certificate_expiry_timestamp_seconds',
    'When the certificate of listen.tls expires, in seconds since 1970',
    [],
    (set) => {
      const certificate = current()
      if (certificate !== undefined) set(certificate.endS)
    },
  )
  const failures = metrics.counter(
    'tls_handshake_failures_total',
    'Client connections that failed during the TLS handshake, for example without the certificate that listen.tls.clientCa requires',
  )
  server.on('tlsClientError', () => failures.inc())
}

/**
 * Begins a pipelined request when the answers before it have ended. Node would begin it at once, and
 * tell it nothing when the connection breaks meanwhile. Nor has Node a limit for those that wait: a
 * connection with too many of them is closed, before they cost more than the bytes they came in.
 */
function inTurn(handler: RequestListener, limits: ConnectionLimits): RequestListener {
  const waiting = new WeakMap<Socket, number>()
  return (req, res) => {
    if (isBehindTheLast(req.socket)) return
    if (res.socket !== null) {
      handler(req, res)
      return
    }
    const { socket } = req
    const count = (waiting.get(socket) ?? 0) + 1
    waiting.set(socket, count)
    if (count > REQUESTS_WAITING_MAX) {
      limits.closePipelined(socket)
      return
    }
    res.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 0) - 1)
      // Others first: who sends ahead has no more turns than who waits for each answer.
      setImmediate(() => {
        if (!res.closed) handler(req, res)
      })
    })
  }
}

/** Node has just set the time-out of an idle connection; it is called behind that. What ends already has its own. */
function hastenStranger(socket: Socket, { keepAliveTimeout }: Server): void {
  if (KNOWN.has(socket) || socket.destroyed || socket.writableEnded) return
  socket.setTimeout(Math.min(STRANGER_KEEP_ALIVE_MS, keepAliveTimeout))
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  const scheme = server instanceof TlsServer ? 'https' : 'http'
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
