/**
 * Limits the number of connections of a server, in total and per address. Each costs a descriptor and memory from the
 * moment it is accepted, before the client can be authenticated; so the limit is the only protection for the
 * descriptors that downloads need against a client that opens many connections.
 */
import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { CapfleetError } from '../base/error.ts'
import type { Metrics } from '../base/metrics.ts'
import { addressOf, TrustedProxies } from './caller-address.ts'
import { resetConnection } from './reset-connection.ts'

type LimitReason = 'total' | 'address'

export interface ConnectionLimitSettings {
  /** Default: as many as the descriptors of the process allow, at most 10,000. */
  readonly maxConnections?: number | undefined
  /** Default: half of maxConnections, so that no address can take all of them. */
  readonly maxConnectionsPerAddress?: number | undefined
  /** Networks of proxies, which are not limited per address, because their connections are those of many callers. */
  readonly trustedProxies?: readonly string[] | undefined
}

/** The gateway opens a connection to a device for nearly each one that it accepts. */
const DESCRIPTORS_PER_CONNECTION = 2
/** Descriptors reserved for files, Redis, listening sockets and lists of devices. */
const DESCRIPTORS_RESERVED = 200
const CONNECTIONS_MIN = 16
const CONNECTIONS_MAX = 10_000

/**
 * Number of rejected connections that may stay open to receive the reason, in total and per address. The oldest is
 * closed to make room for the next: a liveness probe (/livez) asks at once and is answered, however many others
 * connect and hold their connections open.
 */
const REFUSED_MAX = 64
const REFUSED_PER_ADDRESS_MAX = 16
/** How long a rejected connection may take to send a request, and to read the reason. */
const REFUSED_MS = 1_000
const RETRY_AFTER_S = 5

/** Why no request of a connection may be answered. */
const REFUSALS = new WeakMap<Socket, CapfleetError>()

interface RefusedConnection {
  readonly socket: Socket
  readonly address: string
  readonly error: CapfleetError
}

export class ConnectionLimits {
  readonly #max: number
  readonly #maxPerAddress: number
  readonly #proxies: TrustedProxies
  readonly #byAddress = new Map<string, number>()
  readonly #countRefused: (reason: LimitReason | 'pipelined') => void
  readonly #open = new Set<Socket>()
  /** Rejected connections that are still open to receive the reason, by peerOf; oldest first. */
  readonly #refused = new Map<string, RefusedConnection>()

  constructor(settings: ConnectionLimitSettings, metrics: Metrics) {
    this.#max = settings.maxConnections ?? connectionsAllowed(descriptorLimit())
    this.#maxPerAddress = settings.maxConnectionsPerAddress ?? Math.ceil(this.#max / 2)
    this.#proxies = new TrustedProxies(settings.trustedProxies ?? [])
    const refused = metrics.counter(
      'http_connections_refused_total',
      'Connections closed because of a limit: in total, per address, or of requests waiting on one connection',
      ['reason'],
      [{ reason: 'total' }, { reason: 'address' }, { reason: 'pipelined' }],
    )
    this.#countRefused = (reason) => refused.inc({ reason })
    metrics.gauge('http_connections', 'Open connections of clients', [], (gauge) =>
      gauge.set(this.#open.size),
    )
  }

  /**
   * Counts and limits the connections of `server`. A rejected one can send one request, to receive the reason
   * (refusalOf).
   */
  guard(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const reason = this.#admit(socket)
      if (reason === undefined) return
      this.#countRefused(reason)
      this.#refuse(socket, refusal(reason))
    })
    // With TLS, requests arrive on another socket object than the one that was rejected.
    server.on('secureConnection', (socket: Socket) => {
      const refused = this.#refused.get(peerOf(socket))
      if (refused !== undefined) REFUSALS.set(socket, refused.error)
    })
  }

  /** Includes those unknown to the server so far, in the middle of a TLS handshake. */
  closeAll(): void {
    for (const socket of this.#open) socket.destroy()
  }

  /** Closes all connections but these. */
  closeAllBut(kept: ReadonlySet<Socket>): void {
    for (const socket of this.#open) if (!kept.has(socket)) socket.destroy()
  }

  /** Resets all connections: each client notices at once, and loses the bytes that it has not received yet. */
  resetAll(): void {
    for (const socket of this.#open) resetConnection(socket)
  }

  /** Closes a connection on which too many requests are waiting for their turn. */
  closePipelined(socket: Socket): void {
    if (socket.destroyed) return
    this.#countRefused('pipelined')
    socket.destroy()
  }

  /** Counts the connection until it closes, or returns the limit that it would exceed. */
  #admit(socket: Socket): LimitReason | undefined {
    const address = addressOf(socket)
    const ofAddress = this.#byAddress.get(address) ?? 0
    if (ofAddress >= this.#maxPerAddress && !this.#proxies.isOne(socket)) return 'address'
    if (this.#open.size >= this.#max) return 'total'
    this.#open.add(socket)
    count(this.#byAddress, address, 1)
    socket.once('close', () => this.#remove(socket, address))
    return undefined
  }

  /** Not counted among the open ones: a rejected connection must not take a place from others. */
  #refuse(socket: Socket, error: CapfleetError): void {
    REFUSALS.set(socket, error)
    const [peer, address] = [peerOf(socket), addressOf(socket)]
    this.#makeRoom(address)
    this.#refused.set(peer, { socket, address, error })
    const late = setTimeout(() => socket.destroy(), REFUSED_MS)
    socket.once('close', () => {
      clearTimeout(late)
      if (this.#refused.get(peer)?.socket === socket) this.#refused.delete(peer)
    })
  }

  /** Makes room for another rejected connection of the address. */
  #makeRoom(address: string): void {
    const all = [...this.#refused]
    const ofAddress = all.filter(([, refused]) => refused.address === address)
    const isFull = ofAddress.length >= REFUSED_PER_ADDRESS_MAX
    const [oldest] = isFull ? ofAddress : all.length >= REFUSED_MAX ? all : []
    if (oldest === undefined) return
    const [peer, { socket }] = oldest
    this.#refused.delete(peer)
    socket.destroy()
  }

  #remove(socket: Socket, address: string): void {
    this.#open.delete(socket)
    count(this.#byAddress, address, -1)
  }
}

/** Identifies the remote end of the connection, uniquely among the open connections of a server. */
function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}

/** Removes addresses without connections. */
function count(counts: Map<string, number>, address: string, change: 1 | -1): void {
  const left = (counts.get(address) ?? 0) + change
  if (left > 0) counts.set(address, left)
  else counts.delete(address)
}

/** The error that answers every request on this connection except /livez, or undefined if it may be used. */
export function refusalOf(socket: Socket): CapfleetError | undefined {
  return REFUSALS.get(socket)
}

function refusal(reason: LimitReason): CapfleetError {
  const details = { retryAfterS: RETRY_AFTER_S }
  if (reason === 'total') {
    const message = 'the server has reached its connection limit; try again later'
    return new CapfleetError('connections-exhausted', message, details)
  }
  const message = 'your address has reached its connection limit; close some connections or try again later'
  return new CapfleetError('too-many-requests', message, details)
}

/** Exported for its test. */
export function connectionsAllowed(descriptors: number): number {
  const allowed = Math.floor((descriptors - DESCRIPTORS_RESERVED) / DESCRIPTORS_PER_CONNECTION)
  return Math.min(CONNECTIONS_MAX, Math.max(CONNECTIONS_MIN, allowed))
}

/** Node raises the soft limit to the hard one at start; /proc shows the result. */
function descriptorLimit(): number {
  const match = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'latin1'))
  return match?.[1] === undefined || match[1] === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(match[1])
}
