/**
 * Closes a connection after the last answer of a server that is shutting down: only our side ends, and what the client
 * sends is read until it ends its own, as nginx does. Node would close at once; a byte that arrives after that, such
 * as of another request, makes the kernel discard what the client has not read yet. Nor could the connection be reset,
 * which is the only thing a client notices whose bytes are still here when the program's network goes away. While a
 * server is running, Node's behaviour stays, so that a client which closes a connection and opens another finds its
 * place free.
 */
import type { Socket } from 'node:net'

/** A client that leaves its side open and sends nothing keeps the connection for this long. */
const LINGER_MS = 30_000

/** Makes the connection end like that. Node calls its destroySoon() after the last answer, and nowhere else. */
export function lingerAtEnd(socket: Socket): void {
  socket.destroySoon = endOurSide
}

/** Whether a request comes after the last answer; what follows it is not even read. */
export function isBehindTheLast(socket: Socket): boolean {
  if (!socket.writableEnded) return false
  socket.pause()
  return true
}

function endOurSide(this: Socket): void {
  if (this.writable) this.end()
  this.setTimeout(LINGER_MS)
}
