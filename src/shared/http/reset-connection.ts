/**
 * Ends a client's connection by a TCP reset. Under TLS the end of the connection without a closing
 * alert should do, but curl and others take it for a regular one.
 */
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'

/** The TCP socket under a TLS socket; Node knows no way from one to the other. */
const TCP_SOCKETS = new WeakMap<Socket, Socket>()

/** So that connections of this server can be reset. */
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

/** What is under it, when it is a TLS socket. */
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
