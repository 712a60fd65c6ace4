/**
 * Ends a client's connection with a TCP reset. With TLS, closing the connection without a closing alert should
 * suffice, but curl and others accept that as a regular end.
 */
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'

/** The TCP socket under a TLS socket; Node offers no way to get from one to the other. */
const TCP_SOCKETS = new WeakMap<Socket, Socket>()

/** Enables resets of this server's connections. */
export function followConnections(server: TlsServer): void {
  const arrived = new Map<string, Socket>()
  server.on('connection', (tcp: Socket) => {
    const peer = peerOf(tcp)
    arrived.set(peer, tcp)
    tcp.once('close', () => {
      if (arrived.get(peer) === tcp) arrived.delete(peer)
    })
  })
  server.on('secureConnection', (secure: Socket) => {
    const tcp = arrived.get(peerOf(secure))
    if (tcp !== undefined) TCP_SOCKETS.set(secure, tcp)
  })
}

/** The TCP socket under a TLS socket, or the socket itself. */
export function tcpSocketOf(socket: Socket): Socket {
  return TCP_SOCKETS.get(socket) ?? socket
}

export function resetConnection(socket: Socket): void {
  const tcp = tcpSocketOf(socket)
  if (!tcp.destroyed) tcp.resetAndDestroy()
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
