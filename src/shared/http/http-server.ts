/** Starts and stops an HTTP server with limits that slow or hostile clients cannot exhaust. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { CapfleetError } from '../base/error.ts'
import type { Metrics } from '../base/metrics.ts'
import { limitBodyTime } from './body-time.ts'
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
  /** If set, the server accepts HTTPS only. */
  readonly tls?: TlsFiles | undefined
}

export interface RunningServer {
  /** With the actual port, without a trailing slash. */
  readonly url: string
  /**
   * Reads the files of `tls` again: new connections use their contents, existing ones continue. Fails with bad-config
   * without changing anything. Does nothing without `tls`.
   */
  reloadCertificate(): Promise<void>
  /** From now on each connection ends with its next answer. */
  drain(): void
  /**
   * Accepts no new connections, lets running answers end and their clients read them for `drainMs`, then cuts the
   * rest. Connections without an answer in progress do not delay it.
   */
  close(drainMs: number): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const TIMEOUT_CHECK_MS = 1_000
/** A filter expression may have 16 KiB, which percent-encoding can triple. */
const HEADER_MAX_BYTES = 64 * 1024
/** Long enough for scripts that send a request every minute; shorter than the idle limits of common proxies. */
const KEEP_ALIVE_MS = 65_000
/** The same for an unauthenticated connection: its client can open another one for its next request. */
const STRANGER_KEEP_ALIVE_MS = 5_000
/** Scripts and browsers wait for an answer before the next request; sending far ahead only costs memory. */
const REQUESTS_WAITING_MAX = 32

/** The same for a connection whose last answer could not announce that it is the last, while the server drains. */
const LAST_KEEP_ALIVE_MS = 100

/** Connections that have carried a request with valid credentials. */
const KNOWN = new WeakSet<Socket>()

/** Marks the connection as authenticated: it may be idle for as long as those of users. */
export function keepConnection(socket: Socket): void {
  KNOWN.add(socket)
}

/** Fails with bad-config if it cannot listen or the TLS files cannot be used. */
export async function listen(
  handler: RequestListener,
  options: ListenOptions,
  metrics: Metrics,
): Promise<RunningServer> {
  const limits = new ConnectionLimits(options, metrics)
  const answers = new RunningAnswers()
  const onRequest: RequestListener = (req, res) => {
    answers.add(res)
    limitBodyTime(req, res)
    if (!KNOWN.has(req.socket)) res.once('finish', () => hastenStranger(req.socket, server))
    handler(req, res)
  }
  let certificate = options.tls && (await readServerCertificate(options.tls))
  const onTurn = inTurn(onRequest, limits)
  const server = createListener(onTurn, certificate)
  // Otherwise Node would ask for every body before its request is checked; request-body.ts does.
  server.on('checkContinue', onTurn)
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
    // Applied per request by body-time.ts, because an upload may take longer.
    requestTimeout: 0,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Nearly all requests have no body, so none needs the events of an empty stream.
    optimizeEmptyRequests: true,
  }
  if (certificate === undefined) return createServer(limits, handler)
  const { context } = certificate
  // By default, Node would reject a client that offers HTTP/1.0 by name, as curl --http1.0 does.
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
 * Starts a pipelined request once the previous answers have ended. Node would start it at once, and not notify it if
 * the connection breaks meanwhile. Node does not limit the number of waiting requests either: a connection with too
 * many of them is closed before they cost more than the bytes they arrived in.
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
      // Others first: a client that pipelines gets no more turns than one that waits for each answer.
      setImmediate(() => {
        if (!res.closed) handler(req, res)
      })
    })
  }
}

/**
 * Must be called after Node has set the time-out of an idle connection. A connection that is ending already has its
 * own.
 */
function hastenStranger(socket: Socket, { keepAliveTimeout }: Server): void {
  if (KNOWN.has(socket) || socket.destroyed || socket.writableEnded) return
  socket.setTimeout(Math.min(STRANGER_KEEP_ALIVE_MS, keepAliveTimeout))
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  const scheme = server instanceof TlsServer ? 'https' : 'http'
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
